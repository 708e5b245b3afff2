"""Messages of Batsim's protocol, version 4, as partial structs: JSON in both directions, read and written."""
