"""The contract between the loop and the plugins: extension points, statuses, columns, profiles."""
