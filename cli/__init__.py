"""The command line: click commands over the library, and one output package that renders what they return."""
