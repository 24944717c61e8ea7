package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/podrun/podrun/test/internal/measure"
)

const (
	restFor    = 4 * time.Second // a pod that does nothing for so long is at rest: podrun's supervisor has hibernated
	restRounds = 4               // at most, of pods at rest and of disks: each takes long
)

// resting ends the name of a measurement of a pod at rest.
const resting = ", pod at rest"

// lifeOf begins the name of the processor time of a pod's whole life.
const lifeOf = "CPU of a life, "

func lifeTask(s shape) string { return lifeOf + s.title }

// measureLives measures pods at rest, and the processor time of their lives, in a process that adopts orphans.
func (b *bench) measureLives(m measured) error {
	return measure.Rounds("bench: lives", 1, min(b.rounds, restRounds), func(int) error {
		for _, s := range shapes {
			for _, e := range b.engines() {
				used, down, err := b.life(e, s)
				if err != nil {
					return fmt.Errorf("measure a life with %s: %w", e.name(), err)
				}
				m[e.name()].add(lifeTask(s), used)
				m[e.name()].add("down, "+s.title+resting, down)
			}
		}
		for _, e := range b.engines() {
			took, err := b.execAtRest(e, shapes[0])
			if err != nil {
				return fmt.Errorf("execute a command with %s: %w", e.name(), err)
			}
			m[e.name()].add(execTask+resting, took)
		}
		return nil
	})
}

// life returns the processor time of a pod from its up until nothing of it is left, the containers' own
// programs included, and the time of its down. Nothing but the rest is between up and down.
func (b *bench) life(e engine, s shape) (used, down time.Duration, err error) {
	file := b.manifest(s.name)
	before, was := b.user.processes(), reaped()
	if _, err := timed(e.up(s.name, file)); err != nil {
		return 0, 0, err
	}
	time.Sleep(restFor)
	if down, err = timed(e.down(s.name, file)); err != nil {
		return 0, 0, err
	}
	err = b.user.awaitExit(before)
	return reaped() - was, down, err
}

// execAtRest returns the time of a command in a pod at rest.
func (b *bench) execAtRest(e engine, s shape) (time.Duration, error) {
	file, before := b.manifest(s.name), b.user.processes()
	if _, err := timed(e.up(s.name, file)); err != nil {
		return 0, err
	}
	time.Sleep(restFor)
	err := b.user.awaitHibernation(before)
	took, eerr := timed(e.exec(s.name, "/bin/true"))
	_, derr := timed(e.down(s.name, file))
	return took, errors.Join(err, eerr, derr, b.user.awaitExit(before))
}
