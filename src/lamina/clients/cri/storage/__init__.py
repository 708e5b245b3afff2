"""CRI-O's images, read from the files of containers/storage."""
