"""What builds the site beside its pages: parts of the reference, made from the code, and figures, made from the layout."""
