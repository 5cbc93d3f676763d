"""The tables that the scripts here write. It imports no framework, which would take hold of the GPU."""

import csv
import os


class Table:
    """A CSV file whose rows are there as soon as they are measured."""

    def __init__(self, folder, name, columns):
        self.file = open(os.path.join(folder, name + ".csv"), "w", newline="")
        self.writer = csv.writer(self.file)
        self.writer.writerow(columns)

    def row(self, *cells):
        self.writer.writerow([f"{c:.6g}" if isinstance(c, float) else c for c in cells])
        self.file.flush()

    def close(self):
        self.file.close()
