"""A standalone Spark cluster on this machine whose workers see nothing of it but Java, Spark's jars and what is shared.

Master and workers are the processes that Spark's own ``sbin/start-master.sh`` and ``start-worker.sh`` start (pip's PySpark has
the classes, not the scripts). Each worker lives in a mount namespace of its own, below a root that holds the system's
libraries, Java, Spark's jars, the shared directories and the few programs that Hadoop calls: no Python, no home, no ``/tmp`` of
the driver. What its executors need beyond that they do not find.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["StandaloneCluster", "spark_home"]

_HOST = "127.0.0.1"
_SECONDS = 60.0
_SYSTEM = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/etc")
_DEVICES = ("/dev", "/proc")
_PROGRAMS = "bash chmod id ls rm stat"
"""What Hadoop's local file system calls where its native library is missing, as it is in pip's PySpark."""
_ENTER = f"""\
set -eu
new=$1; shift
mount -t tmpfs -o mode=755 tmpfs "$new"
while [ "$1" != -- ]; do
    if [ -L "$1" ]; then
        mkdir -p "$new$(dirname "$1")"; cp -P "$1" "$new$1"
    elif [ -d "$1" ]; then
        mkdir -p "$new$1"; mount --rbind "$1" "$new$1"
    fi
    shift
done
shift
mkdir -p "$new/tmp" "$new/work" "$new/usr/bin"
ln -s usr/bin "$new/bin"
for program in {_PROGRAMS}; do cp "$(command -v $program)" "$new/usr/bin/"; done
exec chroot "$new" "$@"
"""


def spark_home() -> Path:
    """Return where the installed PySpark keeps Spark."""
    import pyspark  # noqa: PLC0415 - pure tests never import Spark

    return Path(pyspark.__file__).resolve().parent


def _java() -> Path:
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else shutil.which("java")
    if not java:
        raise FileNotFoundError("there is no Java; set JAVA_HOME")
    return Path(java).resolve()


def _scala() -> str:
    """Return the Scala version of Spark's jars, which its scripts pass to a worker too."""
    return next((spark_home() / "jars").glob("spark-core_*.jar")).name.split("_")[1].split("-")[0]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((_HOST, 0))
        port: int = listener.getsockname()[1]
    return port


@dataclass
class StandaloneCluster:
    """A master and workers, one executor each; to be used in a ``with`` statement.

    ``directory`` gets logs; ``shared`` are the directories that executors see, under the paths that the driver has for them;
    ``environment`` are variables that they have of their own, such as the credentials of a store.
    """

    directory: Path
    shared: Sequence[Path]
    workers: int = 2
    cores: int = 1
    memory: str = "1g"
    port: int = field(default_factory=_free_port)
    environment: Mapping[str, str] = field(default_factory=dict)
    _web: int = field(default_factory=_free_port)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """What ``--master`` takes."""
        return f"spark://{_HOST}:{self.port}"

    def __enter__(self) -> Self:
        """Start it and wait until all workers are there."""
        self.directory.mkdir(parents=True)
        master = ["--host", _HOST, "--port", str(self.port), "--webui-port", str(self._web)]
        try:
            self._start("master", [], self._command("master.Master", master))
            for number in range(self.workers):
                root = self.directory / f"root-{number}"
                root.mkdir()
                options = ["--cores", str(self.cores), "--memory", self.memory, "--work-dir", "/work"]
                host = f"127.0.0.{number + 2}"  # executors of one host read each other's files instead of asking for them
                options += ["--host", host, "--webui-port", "0", self.url]
                self._start(f"worker-{number}", self._isolated(root), self._command("worker.Worker", options), host)
            self._await(lambda: len(self._state()["workers"]) == self.workers, "the workers to come")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    def stop(self) -> None:
        """End all processes, including the executors; mounts end with them."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=10)
        self._processes.clear()

    def executors(self) -> list[int]:
        """Return the process numbers of the executors that run."""
        leaders = {process.pid for process in self._processes}
        backend = "CoarseGrainedExecutorBackend"
        return [pid for pid, parent, command in _all_processes() if parent in leaders and backend in command]

    def sees(self, path: Path) -> list[bool]:
        """Tell for each worker whether it sees a path of this machine."""
        return [Path(f"/proc/{worker.pid}/root/{path.as_posix().lstrip('/')}").exists() for worker in self._processes[1:]]

    def _command(self, name: str, arguments: Sequence[str]) -> list[str]:
        jars = spark_home() / "jars"
        return [str(_java()), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*",
                f"org.apache.spark.deploy.{name}", *arguments]  # fmt: skip

    def _isolated(self, root: Path) -> list[str]:
        seen = [*_SYSTEM, *_DEVICES, str(_java().parent.parent), str(spark_home() / "jars"), *(str(path) for path in self.shared)]
        as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
        return ["unshare", *as_root, "--mount", "--propagation", "private", "sh", "-c", _ENTER, "enter", str(root), *seen, "--"]

    def _start(self, name: str, before: Sequence[str], command: Sequence[str], host: str = _HOST) -> None:
        environment = {"SPARK_HOME": str(spark_home()), "JAVA_HOME": str(_java().parent.parent), "PATH": os.environ["PATH"],
                       "SPARK_LOCAL_IP": host, "SPARK_SCALA_VERSION": _scala(), **self.environment}  # fmt: skip
        with (self.directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*before, *command], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._processes.append(process)

    def _state(self) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{self._web}/json/", timeout=5) as answer:
                state: dict[str, Any] = json.load(answer)
        except (OSError, ValueError):  # it is not there yet, or shows a page meanwhile
            return {"workers": []}
        return state

    def _await(self, is_ready: Any, awaited: str) -> None:  # noqa: ANN401 - a condition
        end = time.monotonic() + _SECONDS
        while not is_ready():
            ended = [process.args for process in self._processes if process.poll() is not None]
            if ended or time.monotonic() > end:
                logs = "\n".join(log.read_text(errors="replace")[-2000:] for log in sorted(self.directory.glob("*.log")))
                raise TimeoutError(f"waited for {awaited}; the logs end with:\n{logs}")
            time.sleep(0.1)


def _all_processes() -> Iterable[tuple[int, int, str]]:
    """Yield (process, parent, command line) of all processes that can be seen."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            yield int(entry.name), parent, command
