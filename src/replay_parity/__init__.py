"""replay-parity: did a change move the simulated results of AI Simulate?"""

__version__ = "0.1.0"
