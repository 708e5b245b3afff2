"""The custom resources NodeLayers and ImageLayers as JSON: objects, statuses, lists."""
