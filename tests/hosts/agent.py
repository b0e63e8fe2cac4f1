#!/usr/bin/env python3
"""agent.py HOST COMMAND…: stands for ssh in a laboratory (PRTE_MCA_plm_ssh_agent); FOOTPLATE_TEST_LAB is its folder."""

import os
import socket
import struct
import sys

options = [word for word in sys.argv[1:] if word not in ("-x", "-n")]
host, command = options[0], " ".join(options[1:]).encode()
with socket.socket(socket.AF_UNIX) as host_end:
    try:
        host_end.connect(f"{os.environ['FOOTPLATE_TEST_LAB']}/agent-{host}.sock")
    except FileNotFoundError:
        sys.exit(f"ssh: Could not resolve hostname {host}: Name or service not known")
    except ConnectionRefusedError:  # it was there
        sys.exit(f"ssh: connect to host {host} port 22: No route to host")
    host_end.sendall(struct.pack("!I", len(command)) + command)
    while block := host_end.recv(65536):
        sys.stdout.buffer.write(block)
        sys.stdout.flush()
