"""The S3 part of moto's server, alone: ``python s3_alone.py PORT``, by a Python that has moto.

The command ``moto_server`` looks for the service of each request among all of Amazon's, and logs it: a third of its work.
"""

from __future__ import annotations

import sys

from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


class QuietHandler(MotoRequestHandler):
    """Logs no request."""

    def log_request(self, *_: object) -> None:
        """Do nothing."""


if __name__ == "__main__":
    application = create_backend_app("s3")
    application.debug = False
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=QuietHandler)
