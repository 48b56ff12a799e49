"""What a ParameterServer's ps or worker does: serve for ever."""

import signal

signal.pause()
