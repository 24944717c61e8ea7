// Package lifecycle decides what happens to a pod next, as the kubelet would.
//
// It is pure: it has no access to processes, files or clocks. The supervisor (package runner) applies events to an
// Observed, calls Decide, carries out the actions and applies their results:
//
//	      events                       Observed              Decide
//	the kernel, users, clocks ──> Apply ──> state of the pod ──> actions, Wake
//	           ▲                                                  │
//	           └──────────── the supervisor carries them out ─────┘
//
// An action is answered by events, which the comments of ActionKind name. Decide issues no action twice: the
// supervisor applies Issued before it carries an action out. Decide never waits. It returns the time at which it must be
// called again, and any event may come before. So a supervisor can end at any moment: the next one reads the Observed from a
// file, applies Recovered, and calls Decide.
//
// # States
//
// A pod has one sandbox at a time: its namespaces, volumes and cgroup.
//
//	SandboxNone ── CreateSandbox ──> SandboxCreating ── SandboxReady ──> SandboxUp ── SandboxFailed ──> SandboxBroken
//	 ▲   ▲                            │                                   │                                 │
//	 │   └─────── SandboxFailed ──────┘ (of the first one: SandboxDown)   │ the pod has ended               │ nothing runs in it
//	 │                                                                    │                                 │ any more
//	 │                                           RemoveSandbox            ▼                                 │
//	 └── SandboxRemoved: the pod continues ── SandboxRemoving <───────────┴─────────────────────────────────┘
//	                                           │
//	                                           └── SandboxRemoved: the pod has ended ──> SandboxDown
//
// SandboxKilled, at any time, has the effect of SandboxRemoved.
//
// A run is one instance of a container. It begins with a start and ends with the exit; its number is the restart
// count.
//
//	        StartContainer               Started                  Exited
//	RunNone ──────────────> RunStarting ────────> RunRunning ───────────────────> RunEnded
//	                         ▲  │   │                                               │  ▲
//	                         │  │   └── StartFailed: it was made and did not run ───┼──┘
//	                         │  │ StartFailed: it could not be made                 │
//	                         │  ▼                                                   │
//	                         │ RunNotCreated ── after 10 s ──┐                      │
//	                         └───────────────────────────────┴── after the back-off ┘
//
// A pod ends when Ending is set: by a stop, a deadline, an eviction, the loss of its sandbox, or because all its containers
// have ended. No container starts after that. Each gets its preStop hook, its stop signal and SIGKILL, within one
// grace period; then the sandbox is removed and Decision.Done is true.
//
// # Story
//
// A pod has an init container migrate, a sidecar proxy and an app container web, with restart policy Always and a grace
// period of 30 s. A test replays this story: testdata/story.txt. To the left is what happens, to the right what Decide answers.
//
//	 0s  the pod is new                   createSandbox
//	     sandbox ready                    startContainer migrate#0    init containers run one after the other
//	     migrate exits with 0             startContainer proxy#0      a sidecar is an init container that keeps running
//	     proxy has started                startContainer web#0        the pod is Running
//	 5s  web exits with 1                 startContainer web#1        the first restart is immediate
//	     web exits with 1                 Wake at 15s                 the second waits: CrashLoopBackOff
//	15s  the time has come                startContainer web#2
//	     the user stops the pod           stopContainer web#2         the app first
//	     web exits with 0                 stopContainer proxy#0       sidecars after the apps, the last one first
//	     proxy exits with 0               removeSandbox
//	     sandbox removed                  Done                        the supervisor exits; the pod has Succeeded
//
// If web had not ended within the grace period, Wake would have been 45s, and the answer then killContainer web#2. If
// the supervisor had been killed in between, the next one would have continued at the same place.
package lifecycle
