// All pods, and what has happened to them lately.

import { Chart } from './chart.js'
import { Table } from './table.js'
import { age, bytes, cores, el, mood, plain } from './words.js'

const shownEvents = 100

// address is where a pod is shown.
export const address = key => '#/pods/' + key

export class List {
  #charts = new Map() // by NAMESPACE/NAME
  #pods = new Table('Pods', ['Namespace', 'Name', 'Ready', 'Status', 'Restarts', 'Age', 'CPU', 'Memory', 'CPU over time', 'Memory over time'])
  #none = el('p', { class: 'none' }, 'No pods. ', el('code', {}, 'podrun up -d FILE'), ' runs one.')
  #events = new Events()
  element = el('div', {}, el('section', { 'aria-label': 'Pods' }, el('h2', {}, 'Pods'), this.#none, this.#pods.element), this.#events.element)

  show(model) {
    this.#none.hidden = model.pods.size > 0
    this.#pods.element.hidden = model.pods.size === 0
    this.#pods.show([...model.pods].map(([key, pod]) => this.#row(model, key, pod)))
    for (const key of this.#charts.keys()) {
      if (!model.pods.has(key)) this.#charts.delete(key)
    }
    this.#events.show(model, '')
  }

  close() {}

  #row(model, key, pod) {
    if (!this.#charts.has(key)) this.#charts.set(key, [new Chart('CPU', cores, true), new Chart('memory', bytes, true)])
    const charts = this.#charts.get(key)
    draw(model, key, charts)
    const use = model.use.get(key)
    const { namespace, name, creationTimestamp } = pod.object.metadata
    return {
      key,
      mood: mood(pod),
      cells: [
        namespace, { text: name, href: address(key) }, pod.ready, plain(pod.status), pod.restarts, age(model.since(creationTimestamp)),
        cores(use?.cpuMillicores), bytes(use?.memoryWorkingSetBytes), { node: charts[0].element }, { node: charts[1].element },
      ],
    }
  }
}

// draw draws what a pod has used, with a chart for processors and one for memory.
export function draw(model, key, [cpu, memory]) {
  const points = model.history.get(key) ?? []
  const limits = model.use.get(key)?.limits
  cpu.show(points.map(p => [p[0], p[1]]), model.at, model.every * 3, limits?.cpuMillicores)
  memory.show(points.map(p => [p[0], p[2]]), model.at, model.every * 3, limits?.memoryBytes)
}

// Events shows the latest events, of a pod or of all.
export class Events {
  #table = new Table('Events', ['Last seen', 'Type', 'Reason', 'Object', 'Message'])
  #none = el('p', { class: 'none' }, 'No events.')
  element = el('section', { 'aria-label': 'Events' }, el('h2', {}, 'Events'), this.#none, this.#table.element)

  show(model, key) {
    const events = model.eventsOf(key).slice(0, shownEvents)
    this.#none.hidden = events.length > 0
    this.#table.element.hidden = events.length === 0
    this.#table.show(events.map(e => ({
      key: `${e.metadata.namespace}/${e.metadata.name}`,
      mood: e.type === 'Warning' ? 'bad' : undefined,
      cells: [seen(model, e), plain(e.type), plain(e.reason), object(e, key), plain(e.message)],
    })))
  }
}

function seen(model, e) {
  const last = age(model.since(e.lastTimestamp))
  return e.count > 1 ? `${last} (x${e.count} over ${age(model.since(e.firstTimestamp))})` : last
}

// object is what an event is about: the container, or the pod where several are shown.
function object(e, key) {
  const container = /\{(.*)\}$/.exec(e.involvedObject.fieldPath ?? '')?.[1] ?? ''
  const { namespace, name } = e.involvedObject
  return key ? plain(container) || 'the pod' : `${namespace}/${name}` + (container && `{${plain(container)}}`)
}
