package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

func (f *front) volumeCommand() *cli.Command {
	return &cli.Command{
		Name:  "volume",
		Usage: "list and remove the volumes that stay when their pods go",
		Description: `A PersistentVolumeClaim is a directory. It is made when a pod first uses it and
stays until it is removed: by volume rm, delete pvc or down --volumes.

Examples:
  podrun volume ls
  podrun volume inspect data
  podrun volume rm data
`,
		Subcommands: []*cli.Command{f.volumeLsCommand(), f.volumeRmCommand(), f.volumeInspectCommand()},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.Command.Subcommands, "podrun volume", c.Args().First())
			}
			return usageErrorf("volume", "volume takes one of ls, rm and inspect")
		},
	}
}

// claim names a PersistentVolumeClaim.
type claim struct{ namespace, name string }

// volume is what is known of a claim and its directory, of which one may be missing.
type volume struct {
	Name        string   `json:"name"`
	Namespace   string   `json:"namespace"`
	Path        string   `json:"path,omitempty"` // "" if no pod has used it yet
	Claimed     bool     `json:"claimed"`        // there is a PersistentVolumeClaim
	AccessModes []string `json:"accessModes,omitempty"`
	Request     int64    `json:"requestBytes,omitempty"`
	UsedBy      []string `json:"usedBy,omitempty"` // pods
}

// volumes lists the claims and directories there are.
func volumes(dirs store.Dirs) ([]*volume, error) {
	found, err := dirs.Volumes()
	if err != nil {
		return nil, err
	}
	objects, err := dirs.Objects(pod.KindClaim, "")
	if err != nil {
		return nil, err
	}
	byClaim := map[claim]*volume{}
	var list []*volume
	at := func(c claim) *volume {
		if byClaim[c] == nil {
			byClaim[c] = &volume{Namespace: c.namespace, Name: c.name}
			list = append(list, byClaim[c])
		}
		return byClaim[c]
	}
	for _, v := range found {
		at(claim{v.Namespace, v.Name}).Path = v.Dir
	}
	for _, o := range objects {
		v := at(claim{o.Namespace, o.Name})
		if v.Claimed = true; o.Claim != nil {
			v.AccessModes, v.Request = o.Claim.AccessModes, o.Claim.Request
		}
	}
	for _, v := range list {
		users, err := dirs.ClaimUsers(v.Namespace, v.Name)
		if err != nil {
			return nil, err
		}
		for _, p := range users {
			v.UsedBy = append(v.UsedBy, p.Name)
		}
	}
	slices.SortFunc(list, func(a, b *volume) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return list, nil
}

func (f *front) volumeLsCommand() *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the volumes",
		Description: `Lists the claims and their directories. CLAIM is no for a directory whose claim
is gone, USED BY the pods that have the volume.

Examples:
  podrun volume ls
`,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageErrorf("volume ls", "volume ls takes no arguments")
			}
			dirs, err := f.dirs()
			if err != nil {
				return err
			}
			list, err := volumes(dirs)
			if err != nil {
				return err
			}
			rows := [][]string{{"NAMESPACE", "NAME", "CLAIM", "USED BY", "PATH"}}
			for _, v := range list {
				claimed, users, path := "no", "<none>", "<none>"
				if v.Claimed {
					claimed = "yes"
				}
				if len(v.UsedBy) > 0 {
					users = strings.Join(v.UsedBy, ",")
				}
				if v.Path != "" {
					path = v.Path
				}
				rows = append(rows, []string{v.Namespace, v.Name, claimed, users, path})
			}
			return f.table(rows)
		},
	}
}

func (f *front) volumeInspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show what is known of a volume, as JSON",
		ArgsUsage: "NAME...",
		Description: `Shows claims with their directories and the pods that use them.

Examples:
  podrun volume inspect data
`,
		Flags: []cli.Flag{namespaceFlag()},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usageErrorf("volume inspect", "volume inspect takes the names of volumes")
			}
			dirs, err := f.dirs()
			if err != nil {
				return err
			}
			all, err := volumes(dirs)
			if err != nil {
				return err
			}
			found := []*volume{}
			var errs []error
			for _, name := range c.Args().Slice() {
				v, err := volumeNamed(all, claim{c.String("namespace"), name})
				if errs = append(errs, err); err == nil {
					found = append(found, v)
				}
			}
			out := json.NewEncoder(f.out)
			out.SetIndent("", "  ")
			return errors.Join(append(errs, out.Encode(found))...)
		},
	}
}

func volumeNamed(all []*volume, c claim) (*volume, error) {
	for _, v := range all {
		if v.Namespace == c.namespace && v.Name == c.name {
			return v, nil
		}
	}
	return nil, report.New(report.Failure, "podrun volume ls lists the volumes", "volume %q not found in namespace %q", c.name, c.namespace)
}

func (f *front) volumeRmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove volumes with what is in them",
		ArgsUsage: "NAME...",
		Description: `Removes claims with their directories. One that a pod has is kept.

Examples:
  podrun volume rm data
`,
		Flags: []cli.Flag{namespaceFlag()},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usageErrorf("volume rm", "volume rm takes the names of volumes")
			}
			dirs, err := f.dirs()
			if err != nil {
				return err
			}
			var claims []claim
			for _, name := range c.Args().Slice() {
				claims = append(claims, claim{c.String("namespace"), name})
			}
			return f.removeVolumes(dirs, claims)
		},
	}
}

// removeVolumes removes claims with their directories, and says so.
func (f *front) removeVolumes(dirs store.Dirs, claims []claim) error {
	lock, err := dirs.LockObjects()
	if err != nil {
		return fmt.Errorf("cannot remove volumes: %w", err)
	}
	defer lock.Close()
	all, err := volumes(dirs)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range claims {
		err := f.removeVolume(dirs, all, c)
		if errs = append(errs, err); err == nil {
			fmt.Fprintf(f.out, "persistentvolumeclaim/%s deleted\n", c.name)
		}
	}
	return errors.Join(errs...)
}

func (f *front) removeVolume(dirs store.Dirs, all []*volume, c claim) error {
	v, err := volumeNamed(all, c)
	switch {
	case err != nil:
		return err
	case len(v.UsedBy) > 0:
		return report.New(report.Failure, "podrun down "+v.UsedBy[0]+" removes the pod", "cannot remove volume %s: pod %s has it", v.Name, v.UsedBy[0])
	}
	if err := f.removeClaim(dirs, c.namespace, c.name); err != nil {
		return err
	}
	if err := dirs.DeleteObject(pod.KindClaim, c.namespace, c.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeClaim removes the directory of a claim, if it has one.
func (f *front) removeClaim(dirs store.Dirs, namespace, name string) error {
	dir, err := dirs.ClaimDir(namespace, name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return err
	}
	return keeper.removeClaim(namespace, name)
}
