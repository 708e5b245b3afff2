"""
Annotators: write measured values of nodes as node annotations, which scheduling agents read.

    watched_cluster      nodes and pods, watched
    node_values          the interface of a source of annotation values
    usage_values, allocation_values, congestion_values      the three sources
    congestion_level     the formula for how congested a node is
    annotation_plan      which nodes need a write
    annotation_writer    rate-limited writes of annotations
    annotation_loop      measures, plans and writes repeatedly
    wiring               builds and runs an annotator
"""
