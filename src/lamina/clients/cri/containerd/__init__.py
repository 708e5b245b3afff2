"""
What a containerd holds, asked over its own API.

    source     RuntimeSource: says when the next look is worth it
    looking    puts a look together
    calls      the reading methods of containerd, each with a deadline and a bound
    documents  indexes, manifests and configurations, each read once
    platforms  which manifest of an index containerd chooses
    contents   what the store of blobs says besides: snapshotters, blobs kept, manifests of pulls
    snapshots  which layers are unpacked, and how large
    shelf      the images that are held, as they are reported
    downloads  what is being downloaded, for which image, how fast
    pulls      pulls that are going on
    listening  the stream of events
    ledger     what events said
    rhythm     when to look again
"""
