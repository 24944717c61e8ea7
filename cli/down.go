package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
)

func (f *front) downCommand() *cli.Command {
	return &cli.Command{
		Name:      "down",
		Usage:     "stop and remove pods, and what makes them",
		ArgsUsage: "POD... | KIND/NAME... | -l SELECTOR | --all | -f FILE",
		Description: `Stops pods gracefully (stop signal, grace period, SIGKILL) and removes them with
their volumes, root file systems and logs. Claims stay, without --volumes. It
also removes what is left of a pod that was killed, or that was there before a
reboot. A deployment, job or the like is removed with its pods; if you remove
only one of its pods, it makes another. With -f it then removes the services,
configmaps, secrets and empty namespaces of the file, too; --keep-objects
leaves them.

The removal is completed even if this command is killed meanwhile.

Examples:
  podrun down web
  podrun down -f web.yaml
  podrun down web --grace-period 5
  podrun down web --force
  podrun down deployment/web job/hello
  podrun down -l app=web
  podrun down --all -n test
`,
		Flags: append([]cli.Flag{
			namespaceFlag(),
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "remove the pods of this `FILE` (- is standard input)"},
			&cli.BoolFlag{Name: "keep-objects", Usage: "with -f: remove the pods, and leave the services, configmaps and secrets of the file"},
			&cli.BoolFlag{Name: "volumes", Usage: "delete the claims of the pods, too, with what is in them"},
		}, append(selectionFlags("the pods and workloads"), endingFlags()...)...),
		Action: f.down,
	}
}

func (f *front) down(c *cli.Context) error {
	how, err := endingOf(c)
	if err != nil {
		return err
	}
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	if len(c.StringSlice("filename")) > 0 && c.Args().Present() {
		return usageErrorf("down", "down takes either names or -f, not both")
	}
	chosen, err := selectionOf(c, c.Args().Present() || len(c.StringSlice("filename")) > 0)
	if err != nil {
		return err
	}
	workloads, places, missing := f.downChosen(c, dirs, chosen)
	kept, kerr := f.downObjects(c)
	if kerr != nil {
		return errors.Join(missing, kerr)
	}
	if len(places)+len(workloads) == 0 {
		return errors.Join(missing, f.dropObjects(c.Context, dirs, kept))
	}
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return err
	}
	f.warnOfUnits(dirs, places)
	var claims []claim
	if c.Bool("volumes") {
		if claims = claimsOf(places); len(workloads) > 0 {
			return usageErrorf("down", "--volumes is for pods: podrun volume rm removes the claims of a workload")
		}
	}
	errs := make([]error, len(places))
	gone := make([]error, len(workloads))
	var all sync.WaitGroup
	for i, w := range workloads {
		all.Go(func() { gone[i] = f.downWorkload(c.Context, dirs, keeper, w, how) })
	}
	for i, p := range places {
		all.Go(func() {
			if errs[i] = dirs.RemoveReplacement(p); errs[i] == nil {
				errs[i] = downTelling(c.Context, f.err, keeper.remove, p, how)
			}
		})
	}
	all.Wait()
	for i, w := range workloads {
		if gone[i] == nil {
			fmt.Fprintf(f.out, "%s/%s deleted\n", kindWord(w.Kind), w.Name)
		}
	}
	for i, p := range places {
		if errs[i] == nil {
			errs[i] = dirs.RemoveUpdate(p)
		}
		if errs[i] == nil {
			fmt.Fprintf(f.out, "pod/%s deleted\n", p.Name)
		}
	}
	failed := errors.Join(slices.Concat(gone, errs)...)
	if failed == nil { // else they may be needed yet
		failed = f.dropObjects(c.Context, dirs, kept)
	}
	return errors.Join(failed, missing, f.dropVolumes(dirs, claims))
}

// downChosen are the workloads and the pods that the user means and that are there, and an error
// about the others.
func (f *front) downChosen(c *cli.Context, dirs store.Dirs, s *selection) ([]store.Workload, []store.Pod, error) {
	if s != nil {
		workloads, places, err := s.downSelected(dirs)
		if len(workloads)+len(places) == 0 && err == nil {
			s.none(f)
		}
		return workloads, places, err
	}
	workloads, words, missing := f.downWorkloads(c, dirs)
	if len(words)+len(c.StringSlice("filename")) == 0 && c.Args().Present() {
		return workloads, nil, missing
	}
	places, lacking := f.downPlaces(c, dirs, words)
	return workloads, places, errors.Join(missing, lacking)
}

// downObjects are the objects that are removed after the pods: those of the files, unless they
// are to be kept.
func (f *front) downObjects(c *cli.Context) ([]target, error) {
	files := c.StringSlice("filename")
	if len(files) == 0 || c.Bool("keep-objects") {
		return nil, nil
	}
	return f.targetsIn(files)
}

// downWorkloads are the workloads that the user named, and the words about pods.
func (f *front) downWorkloads(c *cli.Context, dirs store.Dirs) ([]store.Workload, []string, error) {
	if files := c.StringSlice("filename"); len(files) > 0 {
		list, err := f.workloadsIn(dirs, files)
		return list, c.Args().Slice(), err
	}
	return workloadWords(dirs, c.String("namespace"), c.Args().Slice())
}

// downPlaces are the pods the user named that are there, and an error about the
// others: as with kubectl delete, they do not keep these from being removed.
func (f *front) downPlaces(c *cli.Context, dirs store.Dirs, words []string) ([]store.Pod, error) {
	files := c.StringSlice("filename")
	switch {
	case len(files) == 0 && !c.Args().Present():
		return nil, usageErrorf("down", "down takes the names of pods, --selector or --all, or -f and a file")
	}
	var places []store.Pod
	var errs []error
	add := func(p store.Pod, err error) {
		if err == nil && !p.HasRemains() && !replacing(dirs, p) {
			err = noPod(dirs, p)
		}
		if err != nil {
			errs = append(errs, err)
			return
		}
		places = append(places, p)
	}
	for _, word := range words {
		add(place(dirs, c.String("namespace"), word))
	}
	if len(files) > 0 {
		found, err := f.placesIn(dirs, files)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			add(p, nil)
		}
	}
	return unique(places), errors.Join(errs...)
}

// replacing returns whether a pod is on record as one that is to be made in the place of another.
func replacing(dirs store.Dirs, p store.Pod) bool {
	r, err := dirs.Replacement(p)
	return r != nil || err != nil
}

func unique(places []store.Pod) []store.Pod {
	var out []store.Pod
	seen := map[store.Pod]bool{}
	for _, p := range places {
		if !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

// downPod stops a pod, if it runs, and removes it.
func downPod(ctx context.Context, said io.Writer, remove func(store.Pod) error, p store.Pod, how ending) error {
	how.remove = true
	return remote.Down(ctx, p, func() error { return stopPod(ctx, said, p, how) }, remove)
}

// downTelling is downPod for a user who waits for it.
func downTelling(ctx context.Context, said io.Writer, remove func(store.Pod) error, p store.Pod, how ending) error {
	defer remote.Waiting(said, "stopping", p, how.grace, nil)()
	return downPod(ctx, said, remove, p, how)
}

// forceTime is how long a supervisor may take when the user is out of patience.
const forceTime = 3 * time.Second

// stopPod asks the supervisor and waits, but not for ever.
func stopPod(ctx context.Context, said io.Writer, p store.Pod, how ending) error {
	if !how.force {
		return remote.End(ctx, p, how.request())
	}
	within, cancel := context.WithTimeout(ctx, forceTime)
	defer cancel()
	err := remote.Stop(within, p, how.request())
	if err == nil || ctx.Err() != nil {
		return err
	}
	fmt.Fprintf(said, "podrun: the supervisor of pod %s does not answer: killing it\n", p.Name)
	return killPod(p)
}

// replaceSupervisor has the keeper kill a supervisor that does not answer, and begin
// another.
func replaceSupervisor(p store.Pod) error { return signalKeeper(p, unix.SIGUSR1) }

// killPod ends every process of a pod: first the guard, which would have another keeper.
func killPod(p store.Pod) error {
	if pid, ok := p.Monitor(); ok && podinit.IsMonitor(pid, p) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("end the guard of pod %s: %w", p.Name, err)
		}
	}
	err := signalKeeper(p, unix.SIGKILL)
	if err != nil && !p.Alive() {
		return nil // its keeper was dead already
	}
	return err
}

// signalKeeper sends a signal to the pod's keeper, who is the peer of those that connect
// to the control socket. With the keeper every process of the pod ends.
func signalKeeper(p store.Pod, sig unix.Signal) error {
	conn, err := p.Dial()
	if err != nil {
		return fmt.Errorf("cannot find the keeper of pod %s: %w", p.Name, err)
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	cerr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(cerr, err); err != nil {
		return fmt.Errorf("find the keeper of pod %s: %w", p.Name, err)
	}
	if peer.Pid <= 1 {
		return fmt.Errorf("the keeper of pod %s cannot be seen from here", p.Name)
	}
	if err := unix.Kill(int(peer.Pid), sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send a signal to the keeper of pod %s: %w", p.Name, err)
	}
	return nil
}
