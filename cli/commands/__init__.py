"""One module for each group of commands; a module is imported when its command is used."""
