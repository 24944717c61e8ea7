package vm

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// setMake, run by dev, makes the versions of a set: v1, v2, and bad, which is never ready.
const setMake = `set -e
for version in v1 v2 bad; do
	image=b other=new ready='touch /ready'
	case $version in
	v1) image=a other=old ;;
	bad) other=worse ready=: ;;
	esac
	mkdir site-$version
	cat >site-$version/site.yaml <<Y
{apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {version: $version}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: "127.0.0.1:5100/$image:1", command: [sh, -c, "$ready; trap 'exit 0' TERM; sleep infinity & wait"], volumeMounts: [{name: page, mountPath: /page}],
     readinessProbe: {periodSeconds: 1, exec: {command: [test, -e, /ready]}}}
  volumes: [{name: page, configMap: {name: page}}]
---
apiVersion: v1
kind: Pod
metadata: {name: $other}
spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: "127.0.0.1:5100/$image:1", command: [sh, -c, "trap 'exit 0' TERM; sleep infinity & wait"]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: "127.0.0.1:5100/$image:1", command: [sh, -c, "trap 'exit 0' TERM; sleep infinity & wait"]}]}
Y
done
cat >mine.yaml <<Y
apiVersion: v1
kind: Pod
metadata: {name: mine}
spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: "127.0.0.1:5100/a:1", command: [sh, -c, "trap 'exit 0' TERM; sleep infinity & wait"]}]}
Y`

// setLog, run by root, makes the registry log its requests.
const setLog = `set -e
sed -i 's/, accesslog: {disabled: true}//' /etc/registry.yml
mkdir -p /etc/systemd/system/registry.service.d
printf '[Service]\nStandardOutput=append:/var/requests\n' >/etc/systemd/system/registry.service.d/log.conf
systemctl daemon-reload
systemctl restart registry.service
cp --sparse=always /var/store.img /var/empty.img
truncate -s 1G /var/writes.img`

// setEnv has what the scripts below share.
const setEnv = cutsEnv + `
source=oci://127.0.0.1:5100/team/site:stable
follow() { podrun follow --once --stable 0s "$@" $source; }
push() { SOURCE_DATE_EPOCH=1000 podrun image push site-$1 $source; }
`

// setChanges, run by dev, starts a set and a pod beside it, and changes the set to VERSION..., with
// marks in the log of writes. A change to bad begins at its way back; the time that bad has before
// that is none of the log's.
const setChanges = setEnv + `set -e
mark() { sync; sudo dmsetup message store 0 mark $1; }
until bash -c ': </dev/tcp/127.0.0.1/5100' 2>/dev/null; do sleep 0.2; done
push v1
follow --timeout 15m
podrun up -d mine.yaml
for version; do
	push $version
	if [ $version = bad ]; then
		{ ! follow --retry --timeout 5s 2>&1; } | while IFS= read -r line; do
			echo "$line"
			case $line in *': going back: '*) mark begin ;; esac
		done
	else
		mark begin
		follow --timeout 15m
	fi
	mark end-$version
done`

// setChange, run by dev, changes a new set from v1 to VERSION, and prints "now" SECONDS after the begin, of a change to bad
// after that of the way back.
const setChange = setEnv + `set -e
until bash -c ': </dev/tcp/127.0.0.1/5100' 2>/dev/null; do sleep 0.2; done
push v1
follow --timeout 15m
podrun up -d mine.yaml
push $1
sync
{
	[ $1 = bad ] || echo ': going back: '
	follow --timeout $([ $1 = bad ] && echo 5s || echo 15m) 2>&1 || :
} | while IFS= read -r line; do
	case $line in *': going back: '*) sleep $2; echo now ;; esac
done`

// setMount, run by root, mounts the disk as the last power cut has left it.
const setMount = `set -e
modprobe loop
mount -o loop /var/store.img /mnt/store`

// setCut, run by root, makes and mounts the disk as a power cut has left it: writes up to FLUSH are
// on it. Of those before NEXT, all, none or some are on it. DONE is the entry up to which the disk
// /var/prefix.img has all writes.
const setCut = `set -e
done=$1 flush=$2 next=$3 later=$4
replay=/home/dev/podrun/replay
[ $done -gt 0 ] || cp --sparse=always /var/empty.img /var/prefix.img
$replay /var/writes.img /var/prefix.img $((done + 1)) $flush
cp --sparse=always /var/prefix.img /var/cut.img
case $later in
all) $replay /var/writes.img /var/cut.img $((flush + 1)) $((next - 1)) ;;
some) $replay /var/writes.img /var/cut.img $((flush + 1)) $((next - 1)) torn ;;
esac
mount -o loop /var/cut.img /mnt/store`

// setCheck, run by dev after a cut, prints the state in which the set was, its version, and the
// seconds until the set was back at its version, without its registry, and at TAG. All parts of the
// set must be of one version.
const setCheck = setEnv + `set -e
tag=$1
record() { podrun follow status site -o json; }
state=$(record | sed -n 's/^ *"state": "\(.*\)",/\1/p')
current() { grep -o 'version: v[12]' $XDG_DATA_HOME/podrun/sets/site/$(record | sed -n '/"current"/,/}/s/^ *"id": "\(.*\)",/\1/p') | cut -d ' ' -f 2; }
others() { (cd $XDG_DATA_HOME/podrun/pods/default/mine && find . -name rootfs -prune -o -type f -print | sort | xargs sha256sum); }
parts() { # what the parts of the set are of
	podrun get pods -o name | sort | tr '\n' ' '
	for pod in web $other $api; do podrun exec $pod -- cat /name; done
	echo $(podrun exec web -- cat /page/version)
	podrun get configmap page -o 'jsonpath={.data.version} '
	podrun get deployment api -o 'jsonpath={.spec.template.spec.containers[0].image} {.status.readyReplicas}' | sed 's/@[^ ]*//'
}
same() { # VERSION: wait until all parts are of this version; pods of a Deployment end after its roll-out
	case $1 in
	v1) image=a other=old ;;
	v2) image=b other=new ;;
	esac
	podrun rollout status deployment api --timeout 10m >&2
	podrun wait --for=condition=Ready --timeout 10m web $other >&2
	for try in $(seq 100); do
		api=$(podrun get pods -l app=api -o name | cut -d / -f 2)
		is=$(parts 2>&1) || true
		want="$(printf '%s\n' pod/$api pod/mine pod/$other pod/web | sort | tr '\n' ' ')$image
$image
$image
$1
$1 127.0.0.1:5100/$image:1 1"
		[ "$is" != "$want" ] || return 0
		sleep 0.2
	done
	echo "the set is not of version $1 but $is" >&2
	exit 1
}
version=$(current)
mine=$(others)
sudo iptables -I INPUT -p tcp --dport 5100 -j REJECT --reject-with tcp-reset
begun=$(date +%s)
if follow >&2 2>err; then echo 'there is a registry' >&2; exit 1; fi
took=$(($(date +%s) - begun))
cat err >&2
grep -q 'connection refused' err
if grep '^podrun: ' err | grep -v -e ': the machine was restarted$' -e ': going back: its last change was interrupted$' \
	-e ': waiting for the rollout to finish: ' -e ': connection refused$' >&2; then exit 1; fi
same $version
sudo iptables -D INPUT 1
push $tag >&2
sudo truncate -s 0 /var/requests
begun=$(date +%s)
follow --timeout $([ $tag = bad ] && echo 5s || echo 15m) >out 2>&1 || { [ $tag = bad ] && grep 'it is back at its former version' out; } || { cat out; exit 1; } >&2
again=$(($(date +%s) - begun))
[ $tag = bad ] || version=$tag
same $version
[ "$mine" = "$(others)" ] || { echo 'the pod beside the set has changed' >&2; exit 1; }
if [ $state != settled ] && grep 'GET /v2/[ab]/blobs' /var/requests >&2; then exit 1; fi
podrun image verify >&2
podrun follow rm site >&2
podrun down mine >&2
echo $state $version $took $again`

// setCuts returns how many changes are made, to which versions, how many cuts are checked, and how often the power is cut.
func setCuts(t *testing.T) (versions []string, cuts, pulls int) {
	if !torture() {
		return []string{"v2", "bad"}, 5, 1
	}
	cuts = 10 * rounds(t, 1)
	for range 1 + cuts/100 {
		versions = append(versions, "v2", "v1", "bad", "v2", "bad", "v1")
	}
	return versions, cuts, 10
}

// setMoment is a moment of a power cut: after the entry flush of the log, and before the flush next.
// tag is the version to which the set was being changed.
type setMoment struct {
	flush, next int
	tag         string
}

// setMoments returns the moments within changes, from the list of the tool replay.
func setMoments(t *testing.T, list string) (moments []setMoment) {
	t.Helper()
	last, begun := 0, -1
	for line := range strings.Lines(list) {
		number, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		tag, ends := strings.CutPrefix(name, "end-")
		switch {
		case name == "flush":
			if begun >= 0 {
				moments = append(moments, setMoment{flush: last, next: n})
			}
			last = n
		case name == "begin":
			begun = len(moments)
		case ends:
			for i := begun; i < len(moments); i++ {
				moments[i].tag = tag
			}
			begun = -1
		}
	}
	return moments
}

// chosenMoments returns moments by chance, in their order: four of five in changes, the fifth in a way back.
func chosenMoments(all []setMoment, cuts int) (chosen []setMoment) {
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	left := map[bool]int{true: cuts / 5, false: cuts - cuts/5}
	for _, m := range all {
		if back := m.tag == "bad"; left[back] > 0 {
			left[back]--
			chosen = append(chosen, m)
		}
	}
	slices.SortFunc(chosen, func(a, b setMoment) int { return a.flush - b.flush })
	return chosen
}

// checkSet checks the set after a cut in its change to a version, and returns the state in which it was.
func (m *machine) checkSet(t *testing.T, cut, tag string) (state string) {
	t.Helper()
	var errs bytes.Buffer
	check := m.command("session", "sh", "-c", setCheck, "sh", tag)
	check.Stderr = &errs
	output, err := check.Output()
	if err != nil {
		t.Fatalf("%s, in the change to %s: %v\n%s", cut, tag, err, errs.Bytes())
	}
	result := strings.TrimSpace(string(output))
	t.Logf("%s, to %s: %s", cut, tag, result)
	state, _, _ = strings.Cut(result, " ")
	return state
}

// cutSet cuts the power of the machine, within a time after the begin of a change to tag, or of the way back from it.
func (m *machine) cutSet(t *testing.T, tag string, within time.Duration) {
	t.Helper()
	after := fmt.Sprintf("%.2f", rand.Float64()*within.Seconds())
	work := m.command("session", "sh", "-c", setChange, "sh", tag, after)
	output, err := work.StdoutPipe()
	if err == nil {
		err = work.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(output); lines.Scan() && lines.Text() != "now"; {
	}
	m.cut(t)
	work.Wait()
}

// TestSetPowerCuts cuts the power while a set is changed, and while it goes back. In the next boot
// one `podrun follow`, without the registry, makes the set the version of its record again, all of
// it, and another one, with the registry, that of the tag. A log of all writes of the disk has many
// moments: each flush, with the later writes lost, on the disk, or torn. At last the power of the machine is cut.
func TestSetPowerCuts(t *testing.T) {
	needMachines(t)
	t.Parallel()
	m := boot(t, "debian")
	root := func(script string, words ...string) string {
		return m.must(t, "root", append([]string{"sh", "-c", script, "sh"}, words...)...)
	}
	root(cutsSetup)
	root(setLog)
	m.must(t, "session", "sh", "-c", cutsImages)
	m.must(t, "session", "sh", "-c", setMake)
	versions, cuts, pulls := setCuts(t)
	root(storeOn("log-writes $disk $(losetup -f --show /var/writes.img)"))
	start := time.Now()
	m.must(t, "session", append([]string{"sh", "-c", setChanges, "sh"}, versions...)...)
	took := time.Since(start) / time.Duration(1+len(versions))
	t.Logf("%d changes took %.0f s each", len(versions), took.Seconds())
	root("sync")
	m.cut(t)
	moments := setMoments(t, root("modprobe loop; "+home+"/replay /var/writes.img"))
	t.Logf("%d moments", len(moments))
	done, found := 0, map[string]int{}
	for _, at := range chosenMoments(moments, cuts) {
		later := []string{"all", "none", "some"}[rand.IntN(3)]
		root(setCut, strconv.Itoa(done), strconv.Itoa(at.flush), strconv.Itoa(at.next), later)
		done = at.flush
		cut := fmt.Sprintf("cut after entry %d, before %d, %s of the later writes", at.flush, at.next, later)
		found[m.checkSet(t, cut, at.tag)]++
		root("umount /mnt/store")
	}
	root("cp --sparse=always /var/empty.img /var/store.img; sync; " + setMount)
	for i := range pulls {
		tag, within := "v2", took
		if i%5 == 4 {
			tag, within = "bad", took/2
		}
		m.cutSet(t, tag, within)
		root(setMount)
		found[m.checkSet(t, fmt.Sprintf("cut %d of the machine's power", i+1), tag)]++
	}
	t.Logf("cuts by the state of the set: %v", found)
}
