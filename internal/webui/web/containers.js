// The containers of a pod: state, usage, image, ports, probes, limits, and the last termination.

import { age, bytes, cores, el, mark, pairs, plain, setText } from './words.js'

export class Containers {
  #cards = new Map() // by name
  #list = el('div', { class: 'cards' })
  element = el('section', { 'aria-label': 'Containers' }, el('h2', {}, 'Containers'), this.#list)

  show(pod, model, use) {
    for (const c of containersOf(pod)) {
      if (!this.#cards.has(c.spec.name)) {
        const card = new Card(c)
        this.#cards.set(c.spec.name, card)
        this.#list.append(card.element)
      }
      this.#cards.get(c.spec.name).show(c, model, use?.containers?.find(u => u.name === c.spec.name))
    }
  }
}

// containersOf returns the containers of a v1.Pod with their status, in the order in which they start.
export function containersOf({ spec, status }) {
  const join = (specs, states, kind) => (specs ?? []).map(c => ({
    spec: c, kind: kind(c), status: (states ?? []).find(s => s.name === c.name),
  }))
  return [
    ...join(spec.initContainers, status.initContainerStatuses, c => c.restartPolicy === 'Always' ? 'sidecar' : 'init'),
    ...join(spec.containers, status.containerStatuses, () => 'container'),
  ]
}

class Card {
  #state = el('span', { class: 'state' })
  #facts = el('dl')

  constructor({ spec, kind }) {
    const id = `container-${spec.name}`
    this.element = el('article', { class: 'card', 'data-container': spec.name, 'aria-labelledby': id },
      el('h3', { id }, plain(spec.name), ' ', el('small', {}, kind)), this.#state, this.#facts)
  }

  show({ spec, status }, model, use) {
    const [text, feeling] = stateOf(model, status?.state ?? {})
    setText(this.#state, text)
    mark(this.#state, 'data-mood', feeling)
    const last = status?.lastState?.terminated
    const limits = spec.resources?.limits, requests = spec.resources?.requests
    pairs(this.#facts, [
      ['Ready', status?.ready ? 'yes' : 'no'], ['Restarts', String(status?.restartCount ?? 0)],
      ['CPU', use && cores(use.cpuMillicores)], ['Memory', use && bytes(use.memoryWorkingSetBytes)],
      ['Limits', amounts(limits)], ['Requests', amounts(requests)],
      ['Ports', (spec.ports ?? []).map(portOf).join(', ')],
      ['Liveness', probeOf(spec.livenessProbe)], ['Readiness', probeOf(spec.readinessProbe)], ['Startup', probeOf(spec.startupProbe)],
      ['Last end', last && endOf(model, last)],
      ['Image', spec.image],
    ])
  }
}

const amounts = list => Object.entries(list ?? {}).map(([k, v]) => `${k} ${v}`).join(', ')

const portOf = p => (p.hostPort ? `${p.hostPort} → ` : '') + `${p.containerPort}/${p.protocol ?? 'TCP'}` + (p.name ? ` ${p.name}` : '')

// probeOf describes a probe as kubectl describe does.
function probeOf(p) {
  if (!p) return ''
  const http = p.httpGet, how = http ? `${(http.scheme ?? 'HTTP').toLowerCase()}-get :${http.port}${http.path ?? '/'}`
    : p.tcpSocket ? `tcp-socket :${p.tcpSocket.port}` : p.grpc ? `grpc :${p.grpc.port}` : `exec ${(p.exec?.command ?? []).join(' ')}`
  return `${how} every ${p.periodSeconds ?? 10}s, timeout ${p.timeoutSeconds ?? 1}s, ${p.failureThreshold ?? 3} failures`
}

// endOf describes a termination.
function endOf(model, { exitCode, reason, signal, finishedAt, message }) {
  const when = finishedAt ? `, ${age(model.since(finishedAt))} ago` : ''
  return `${reason ?? 'Ended'} (${signal ? `signal ${signal}` : `exit code ${exitCode}`}${when})${message ? `: ${message}` : ''}`
}

// stateOf describes what a container does, and how that looks.
function stateOf(model, { running, waiting, terminated }) {
  if (running) return [`Running for ${age(model.since(running.startedAt))}`, 'good']
  if (terminated) return [plain(endOf(model, terminated)), terminated.exitCode ? 'bad' : 'done']
  const reason = waiting?.reason ?? 'Waiting'
  return [plain(reason + (waiting?.message ? `: ${waiting.message}` : '')), /BackOff|Err/.test(reason) ? 'bad' : 'busy']
}
