"""What everything that is kept by row shares: a journal of changed rows, and arrays that grow with the rows."""
