"""Options and argument types that commands share."""
