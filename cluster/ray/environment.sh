# shellcheck shell=sh
# The environment of a Ray node outside a container; read it with `.` before `ray start`.
# The RAY_ settings are those that the platform gives a Ray it starts itself: of a cluster that
# runs already they would come too late.
export PATH="${ORCHESTRATOR_HOME:-/shared/orchestrator}/.venv/bin:$PATH"
export ORCHESTRATOR_CACHE="${ORCHESTRATOR_CACHE:-/shared/cache}"
export HF_HOME="${HF_HOME:-/shared/huggingface}"
export RAY_AUTH_MODE=token
export RAY_worker_niceness=0
export RAY_ENABLE_UV_RUN_RUNTIME_ENV=0
export RAY_USAGE_STATS_ENABLED=0
export RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper=true
export RAY_enable_worker_prestart=0
export RAY_prestart_worker_first_driver=0
export RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0
