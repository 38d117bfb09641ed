"""Row and artifacts to repetitions: node, placement, processes, evidence."""
