"""xdist starts this in place of Python: it has ``runners.py`` fork a process with its streams, and ends with that."""

import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [b"+"], [0, 1, 2])
    for stream in (0, 1):  # pipes, whose other ends xdist has: it sees when nobody holds these any more
        os.close(stream)
    server.recv(1)
