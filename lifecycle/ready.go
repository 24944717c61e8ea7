package lifecycle

// started says whether a container counts as started: it runs. The kubelet asks
// for a startup probe's success and a finished postStart hook too, where there
// are any.
func started(c *Container) bool { return c.State == RunRunning }

// ready says whether a container counts as ready. An init container is when it
// has succeeded; any other when it is started. A readiness probe, where there is
// one, has the last word in the kubelet.
func ready(r role, c *Container) bool {
	if r == roleInit {
		return passed(r, c)
	}
	return started(c)
}
