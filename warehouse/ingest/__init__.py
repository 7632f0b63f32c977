"""From landing files to classified rows: listing, typing, validation; rejected and deferred rows."""
