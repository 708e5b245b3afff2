"""
Image inventory of a containerd, read over its own API.

    containerd_source     RuntimeSource: polls the inventory and decides when the next look is due
    containerd_inventory  one look: combines all parts to the holdings of a node
    containerd_client     the read-only methods of containerd, each with a deadline and a limit
    image_documents       indexes, manifests and configurations, each read once
    platform_match        which manifest of an index containerd chooses
    content_store         facts about blobs: snapshotters, retained layers, manifests of pulls
    snapshots             unpacked layers and their sizes
    reported_images       the held images, as they are reported
    downloads             active downloads, their images and the download rate
    pulls                 active pulls
    event_stream          subscription to containerd's events
    event_log             facts from events
    poll_schedule         when to look again
"""
