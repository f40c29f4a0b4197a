"""The kernel's own alarms. Its command line has `panic=-1`, hence the word before it."""

import re

ALARM = re.compile(r"Oops|BUG:|[Kk]ernel panic|WARNING:|int3:|general protection|invalid opcode|detected stall|blocked for more than")
