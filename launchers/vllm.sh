#!/usr/bin/env bash
#
# vLLM serving meta-llama/Llama-3.1-8B-Instruct
# Made by: enginebench launch vllm --model meta-llama/Llama-3.1-8B-Instruct --set max_model_len=8192 --port 8000 --script
#
# Refuses a port that is taken, starts the engine in a session of its own, waits until it is healthy
# and has completed a real request, prints its base URL, and stays until the engine ends or this
# script is told to (Ctrl-C, TERM, a closed terminal). Then the whole process tree gets TERM and,
# after a grace, KILL: the session, whatever descends from it, and whatever carries our mark.
# `kill -9` of this script itself leaves the engine running; `enginebench launch` guards against that.
#
# Needs Linux, bash, curl, awk and GNU grep. Set by environment variables:
#   PORT             where it listens          (8000)
#   LOG              the engine's output       (vllm.log)
#   START_TIMEOUT_S  how long a start may take (1200)
#   GRACE_S          from TERM to KILL         (15)
# A gated model needs HF_TOKEN in the environment, from where the engine takes it.
#
# shellcheck disable=SC2317  # functions are called by trap, and by name
set -euo pipefail

PORT=${PORT:-8000}
LOG=${LOG:-vllm.log}
START_TIMEOUT_S=${START_TIMEOUT_S:-1200}
GRACE_S=${GRACE_S:-15}

export VLLM_NO_USAGE_STATS=1
export DO_NOT_TRACK=1
command=(
  vllm serve meta-llama/Llama-3.1-8B-Instruct
    --served-model-name meta-llama/Llama-3.1-8B-Instruct
    --host 127.0.0.1
    --port "$PORT"
    --max-model-len 8192
)
root=http://127.0.0.1:"$PORT"
base_url=$root/v1
# A real request of a few tokens, with the fields that this engine takes.
body='{"model":"meta-llama/Llama-3.1-8B-Instruct","messages":[{"role":"user","content":"Say hello."}],"max_tokens":4,"stream":true,"stream_options":{"include_usage":true},"temperature":0.0,"ignore_eos":true,"min_tokens":4}'

engine=  # its main process, which leads its session
helper=  # a question to the engine that is under way
mark=$$-$RANDOM$RANDOM
scratch=$(mktemp -d)

die() {
  echo "$0: $*" >&2
  exit 1
}

# The engine's last words of this start.
last_lines() {
  tail -c "+$((log_begun + 1))" "$LOG" 2>/dev/null | tail -n 15 >&2
}

# members PID...: those of the engine's processes that live, separated by spaces. A worker may have
# left the session, and lost its parent: then the mark in its environment tells, or that it was seen
# before.
members() {
  local marked
  marked=$(grep -lszxF "ENGINEBENCH_SCRIPT=$mark" /proc/[0-9]*/environ | cut -d/ -f3 | tr '\n' ' ') || true
  { cat /proc/[0-9]*/stat 2>/dev/null || true; } | awk -v session="$engine" -v known="$* $marked" '
    {
      pid = $1
      sub(/^.*\) /, "")  # the name stands in parentheses and may hold anything
      split($0, field, " ")
      if (field[1] !~ /[ZX]/) { parent[pid] = field[2]; leader[pid] = field[4] }
    }
    END {
      n = split(known, seen, " ")
      for (i = 1; i <= n; i++) if (seen[i] in parent) ours[seen[i]]
      for (pid in parent) if (leader[pid] == session) ours[pid]
      do {
        grew = 0
        for (pid in parent) if (!(pid in ours) && (parent[pid] in ours)) { ours[pid]; grew = 1 }
      } while (grew)
      for (pid in ours) printf "%s ", pid
    }'
}

# The main process is told first, since well-made engines end their own workers in order; all others
# when it is gone, or after a third of the grace.
end_tree() {
  local begun=$SECONDS waited ours="" told=" " pid
  while ours=$(members "$ours") && [ -n "$ours" ]; do
    waited=$((SECONDS - begun))
    if ((waited > GRACE_S + 5)); then
      echo "$0: processes ${ours}survived KILL" >&2
      return 1
    fi
    for pid in $ours; do
      if ((waited >= GRACE_S)); then
        kill -KILL "$pid" 2>/dev/null || true
      elif [[ $told != *" $pid "* ]] && { ((pid == engine || 3 * waited >= GRACE_S)) || [[ " $ours" != *" $engine "* ]]; }; then
        kill -TERM "$pid" 2>/dev/null || true
        told+="$pid "
      fi
    done
    sleep 0.1
  done
}

finish() {
  local status=$?
  trap '' INT TERM HUP  # a second Ctrl-C must not break this off
  trap - EXIT
  if [ -n "$helper" ]; then kill -KILL "$helper" 2>/dev/null || true; fi
  if [ -n "$engine" ]; then
    end_tree || status=1
  fi
  rm -rf "$scratch"
  exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# ask CURL-WORD...: in the background, since bash runs no trap before a command in the foreground ends.
ask() {
  local status=0
  curl --silent --show-error --noproxy '*' "$@" 2>"$scratch/error" &
  helper=$!
  wait "$helper" || status=$?
  helper=
  return "$status"
}

healthy() {
  ask --fail --max-time 5 --output /dev/null "$root/health"
}

listed() {
  ask --fail --max-time 5 --output "$scratch/models" "$base_url/models" && grep -qF '"meta-llama/Llama-3.1-8B-Instruct"' "$scratch/models"
}

# [DONE] alone is no success: engines send it after an error, too.
completes() {
  local left=$((START_TIMEOUT_S - SECONDS))
  ask --no-buffer --max-time "$((left > 1 ? left : 1))" --output "$scratch/answer" --write-out '%{http_code}' \
    --header 'Content-Type: application/json' --data "$body" "$base_url/chat/completions" >"$scratch/status" || return 1
  case $(cat "$scratch/status") in
    200) ;;
    400 | 401 | 403 | 405 | 413 | 415 | 422) die "the engine refuses a completion: $(head -c 300 "$scratch/answer")" ;;
    *) return 1 ;;
  esac
  grep -q '"finish_reason": *"' "$scratch/answer" && ! grep -q '"error": *["{]' "$scratch/answer"
}

# wait_until WHAT CHECK: asks again and again, while the engine lives and there is time.
wait_until() {
  until "$2"; do
    if ! kill -0 "$engine" 2>/dev/null; then
      last_lines
      die "the engine ended before it was $1; its last lines stand above, all of them in $LOG"
    fi
    if ((SECONDS >= START_TIMEOUT_S)); then
      last_lines
      die "not $1 after $SECONDS s; the engine's last lines stand above, all of them in $LOG"
    fi
    sleep 0.5
  done
}

command -v "${command[0]}" >/dev/null || die "${command[0]} is not here; is it installed, and on PATH?"
command -v curl >/dev/null || die "needs curl"
# An older server on the port would answer in the engine's place.
if (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; then
  holder=$(ss -Hltnp "sport = :$PORT" 2>/dev/null | sed -n 's/.*pid=\([0-9]*\).*/ by process \1/p') || true
  die "port $PORT is taken$holder; stop it, or set PORT to another"
fi

log_begun=$(stat -c %s "$LOG" 2>/dev/null || echo 0)
SECONDS=0
# setsid does not fork here: $! is the engine itself, and leads a session and a process group of its own.
setsid env "ENGINEBENCH_SCRIPT=$mark" "${command[@]}" >>"$LOG" 2>&1 </dev/null &
engine=$!
echo "starting; tail -f $LOG shows what the engine says" >&2
wait_until healthy healthy
wait_until "serving the model" listed
wait_until "able to complete" completes
echo "ready after $SECONDS s: $base_url (Ctrl-C stops it)"

status=0
wait "$engine" || status=$?
last_lines
die "the engine ended with status $status"
