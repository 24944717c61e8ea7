// One pod, in three parts: what it is and uses, its logs, and its YAML.

import { draw, usageCharts } from './chart.js'
import { Containers } from './containers.js'
import { Events } from './events.js'
import { Logs } from './logs.js'
import { address } from './route.js'
import { Table } from './table.js'
import { age, bytes, el, mark, mood, pairs, plain, setText } from './words.js'
import { Yaml } from './yaml.js'

const parts = { '': 'Overview', logs: 'Logs', yaml: 'YAML' }

export class Pod {
  #key
  #part
  #status = el('span', { id: 'status' })
  #why = el('p', { class: 'why', hidden: true })
  #gone = el('p', { role: 'alert', hidden: true }, 'This pod does not exist.')

  constructor(key, part) {
    this.#key = key
    const [namespace, name] = key.split('/')
    this.#part = part === 'logs' ? new Logs(namespace, name) : part === 'yaml' ? new Yaml('pods', key) : new Overview(key)
    const tabs = Object.entries(parts).map(([path, title]) =>
      el('a', { href: path ? address('pods', namespace, name, path) : address('pods', namespace, name), 'aria-current': path === (part ?? '') && 'page' }, title))
    this.element = el('div', {},
      el('p', { class: 'path' }, el('a', { href: '#/' }, 'Pods'), ` / ${namespace}`),
      el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, name), this.#status),
      this.#gone, this.#why,
      el('nav', { class: 'tabs', 'aria-label': 'Parts of the pod' }, ...tabs),
      this.#part.element)
  }

  show(model) {
    const pod = model.pods.get(this.#key)
    this.#gone.hidden = pod !== undefined || !model.loaded
    this.#part.show(pod, model)
    if (!pod) {
      setText(this.#status, model.loaded ? 'gone' : 'loading')
      mark(this.#status, 'data-mood', 'done')
      return
    }
    setText(this.#status, plain(pod.status))
    mark(this.#status, 'data-mood', mood(pod))
    this.#why.hidden = !pod.object.status.message
    setText(this.#why, plain(pod.object.status.message ?? ''))
  }

  close() { this.#part.close?.() }
}

class Overview {
  #key
  #facts = el('dl', { class: 'facts' })
  #charts = usageCharts()
  #containers = new Containers()
  #conditions = new Table('Conditions', ['Condition', 'Status', 'For', 'Reason', 'Message'])
  #events = new Events(100)

  constructor(key) {
    this.#key = key
    this.element = el('div', {},
      this.#facts,
      el('section', { class: 'charts', 'aria-label': 'Resource usage' }, ...this.#charts.map(c => c.element)),
      this.#containers.element,
      this.#events.element,
      el('section', { 'aria-label': 'Conditions' }, el('h2', {}, 'Conditions'), this.#conditions.element))
  }

  show(pod, model) {
    draw(model, this.#key, this.#charts)
    this.#events.show(model, this.#key)
    if (!pod) return
    const use = model.use.get(this.#key)
    pairs(this.#facts, factsOf(pod, model, use))
    this.#containers.show(pod.object, model, use)
    this.#conditions.show((pod.object.status.conditions ?? []).map(c => ({
      key: c.type,
      cells: [plain(c.type), c.status, c.lastTransitionTime ? age(model.since(c.lastTransitionTime)) : '', plain(c.reason ?? ''), plain(c.message ?? '')],
    })))
  }
}

// factsOf returns names and values of what is not in a table.
function factsOf(pod, model, use) {
  const { metadata, spec, status } = pod.object
  const owner = metadata.ownerReferences?.[0]
  return [
    ['Ready', pod.ready], ['Restarts', pod.restarts], ['Age', age(model.since(metadata.creationTimestamp))],
    ['IP', (status.podIPs ?? []).map(p => p.ip).join(', ')],
    ['Restart policy', spec.restartPolicy], ['Controlled by', owner && `${owner.kind}/${owner.name}`],
    ['Processes', use?.pids == null ? '' : String(use.pids) + (use.limits?.pids ? ` / ${use.limits.pids}` : '')],
    ['Disk read', use?.readBytesTotal == null ? '' : bytes(use.readBytesTotal)], ['Disk written', use?.writtenBytesTotal == null ? '' : bytes(use.writtenBytesTotal)],
    ['Labels', Object.entries(metadata.labels ?? {}).map(([k, v]) => `${k}=${v}`).join(' ')],
  ]
}
