#!/usr/bin/env bash
# Runs a sweep as a job that somebody else restarts when it fails:
#   sweep-job python -m orchestrator sweep X.yaml --results /shared/results --address auto
# A sweep with failed trials (4) or without a valid one (5) has ended: they are recorded, and the
# same sweep on a new cluster would report the same. So the job has succeeded; anything else that is
# not 0 is passed on, for the next attempt to go on where this one stopped.
set -u
if [ "$#" -eq 0 ]; then
  echo "sweep-job: needs a command, such as: python -m orchestrator sweep X.yaml" >&2
  exit 2
fi
# Whoever stops the job stops the sweep; it ends its engines before it goes.
child=
trap '[ -n "$child" ] && kill -TERM "$child" 2>/dev/null' TERM
trap '[ -n "$child" ] && kill -INT "$child" 2>/dev/null' INT
"$@" &
child=$!
wait "$child"
status=$?
while kill -0 "$child" 2>/dev/null; do # a signal ends `wait` before the sweep has ended
  wait "$child"
  status=$?
done
case "$status" in
  4) echo "sweep-job: the sweep ended, some trials failed (status 4); see the report" ; exit 0 ;;
  5) echo "sweep-job: the sweep ended, nothing valid was measured (status 5); see the report" ; exit 0 ;;
esac
exit "$status"
