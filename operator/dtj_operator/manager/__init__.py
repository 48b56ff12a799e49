"""The operator process: start-up, kopf handlers, queue, controller, telemetry. Started by `python -m dtj_operator`."""
