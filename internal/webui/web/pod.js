// One pod: its status, containers, use, logs and events.

import { Chart } from './chart.js'
import { draw, Events } from './list.js'
import { Logs } from './logs.js'
import { Table } from './table.js'
import { age, bytes, cores, el, mark, mood, plain, say } from './words.js'

export class Pod {
  #key
  #status = el('strong', { id: 'status' })
  #why = el('p', { class: 'why', hidden: true })
  #gone = el('p', { role: 'alert', hidden: true }, 'This pod does not exist.')
  #facts = el('p', { class: 'facts' })
  #charts = [new Chart('CPU', cores), new Chart('Memory', bytes)]
  #containers = new Table('Containers', ['Container', 'Kind', 'State', 'Ready', 'Restarts', 'CPU', 'Memory', 'Image'])
  #conditions = new Table('Conditions', ['Condition', 'Status', 'For', 'Reason', 'Message'])
  #object = el('pre', { tabindex: '0' })
  #details = el('details', { ontoggle: () => this.#objectShown() }, el('summary', {}, 'Object'), this.#object)
  #events = new Events()
  #logs
  #pod

  constructor(key) {
    this.#key = key
    const [namespace, name] = key.split('/')
    this.#logs = new Logs(namespace, name)
    this.element = el('div', {},
      el('p', {}, el('a', { href: '#/' }, '← all pods')),
      el('h2', {}, name, el('small', {}, ` in ${namespace}`), ' ', this.#status),
      this.#gone, this.#why, this.#facts,
      el('section', { class: 'charts', 'aria-label': 'Resource usage' }, ...this.#charts.map(c => c.element)),
      el('section', { 'aria-label': 'Containers' }, el('h2', {}, 'Containers'), this.#containers.element),
      this.#logs.element,
      this.#events.element,
      el('section', { 'aria-label': 'Conditions' }, el('h2', {}, 'Conditions'), this.#conditions.element),
      this.#details)
  }

  show(model) {
    const pod = this.#pod = model.pods.get(this.#key)
    this.#gone.hidden = pod !== undefined
    draw(model, this.#key, this.#charts)
    this.#events.show(model, this.#key)
    if (!pod) {
      say(this.#status, 'gone')
      mark(this.#status, 'data-mood', 'done')
      return
    }
    const { metadata, status } = pod.object
    say(this.#status, plain(pod.status))
    mark(this.#status, 'data-mood', mood(pod))
    this.#why.hidden = !status.message
    say(this.#why, plain(status.message ?? ''))
    say(this.#facts, [
      `${pod.ready} ready`, `${pod.restarts} restarts`, `${age(model.since(metadata.creationTimestamp))} old`,
      ...(status.podIPs ?? []).map(p => plain(p.ip)),
      ...Object.entries(metadata.labels ?? {}).map(([k, v]) => plain(`${k}=${v}`)),
    ].join(' · '))
    const containers = containersOf(pod.object)
    this.#containers.show(containers.map(c => containerRow(model, c, model.use.get(this.#key))))
    this.#conditions.show((status.conditions ?? []).map(c => ({
      key: c.type,
      cells: [plain(c.type), c.status, c.lastTransitionTime ? age(model.since(c.lastTransitionTime)) : '', plain(c.reason ?? ''), plain(c.message ?? '')],
    })))
    this.#objectShown()
    this.#logs.show(containers.map(c => c.name), metadata.uid + containers.map(c => c.status?.restartCount ?? 0))
  }

  close() { this.#logs.close() }

  #objectShown() {
    if (this.#details.open && this.#pod) say(this.#object, JSON.stringify(this.#pod.object, null, 2))
  }
}

// containersOf are the containers of a v1.Pod with their status, as they are started.
function containersOf({ spec, status }) {
  const join = (specs, states, kind) => (specs ?? []).map(c => ({
    name: c.name, image: c.image, kind: kind(c), status: (states ?? []).find(s => s.name === c.name),
  }))
  return [
    ...join(spec.initContainers, status.initContainerStatuses, c => c.restartPolicy === 'Always' ? 'sidecar' : 'init'),
    ...join(spec.containers, status.containerStatuses, () => 'app'),
  ]
}

function containerRow(model, c, use) {
  const used = use?.containers?.find(u => u.name === c.name)
  const [text, feeling] = stateOf(model, c.status?.state ?? {})
  return {
    key: c.name,
    mood: feeling,
    cells: [
      plain(c.name), c.kind, text, c.status?.ready ? 'yes' : 'no', String(c.status?.restartCount ?? 0),
      cores(used?.cpuMillicores), bytes(used?.memoryWorkingSetBytes), plain(c.image),
    ],
  }
}

// stateOf says what a container does, and how that looks.
function stateOf(model, { running, waiting, terminated }) {
  const message = m => m ? ': ' + plain(m) : ''
  if (running) return [`Running for ${age(model.since(running.startedAt))}`, 'good']
  if (terminated) {
    const { exitCode, reason, signal, finishedAt } = terminated
    const when = finishedAt ? `, ${age(model.since(finishedAt))} ago` : ''
    return [`${plain(reason ?? 'Ended')} (${signal ? `signal ${signal}` : `exit code ${exitCode}`}${when})${message(terminated.message)}`, exitCode ? 'bad' : 'done']
  }
  const reason = waiting?.reason ?? 'Waiting'
  return [plain(reason) + message(waiting?.message), /BackOff|Err/.test(reason) ? 'bad' : 'busy']
}
