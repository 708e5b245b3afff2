"""
Writes what is known of nodes on the nodes themselves, as annotations that scheduling agents read.

    cluster        nodes and pods, watched
    values         the contract of whoever knows what should stand on a node
    usage_values, allocation_values, congestion_values      the three who do
    congestion     how congested a node is: the formula
    planning       which nodes are worth a write
    writing        a few writes a second, of annotations and nothing else
    rounds         one round after the other
    wiring         puts it together
"""
