// All pods and sets, and what has happened to the pods lately.

import { Chart, draw } from './chart.js'
import { Events } from './events.js'
import { Filter } from './filter.js'
import { rowsOf, Section } from './objects.js'
import { address } from './route.js'
import { Table } from './table.js'
import { age, bytes, command, cores, el, mood, plain, setText } from './words.js'

const shownEvents = 20

export class List {
  #model
  #usages = new Map() // by NAMESPACE/NAME
  #filter = new Filter(() => this.show(this.#model))
  #tiles = new Tiles()
  #pods = new Table('Pods', ['Namespace', 'Name', 'Ready', 'Status', 'Restarts', 'Age', 'CPU', 'Memory'])
  #none = el('p', { class: 'none' })
  #sets = new Section('sets')
  #events = new Events(shownEvents, 'Latest events')
  element = el('div', {},
    el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Pods'), this.#filter.element),
    this.#tiles.element, el('section', { 'aria-label': 'Pods' }, this.#none, this.#pods.element),
    this.#sets.element, this.#events.element)

  show(model) {
    this.#model = model
    const pods = [...model.pods].filter(([key, pod]) => this.#filter.matches([key, pod.status], pod.object.metadata.labels))
    this.#filter.count(pods.length, model.pods.size)
    this.#none.hidden = pods.length > 0
    if (!model.loaded) setText(this.#none, 'Loading …')
    else if (model.pods.size > 0) setText(this.#none, 'No pod matches the filter.')
    else if (!this.#none.querySelector('code')) this.#none.replaceChildren('No pods. Start one: ', command('podrun up -d -f FILE'))
    this.#tiles.show(model)
    this.#sets.show(model, rowsOf(model, 'sets'))
    this.#pods.show(pods.map(([key, pod]) => this.#row(model, key, pod)))
    for (const key of this.#usages.keys()) {
      if (!model.pods.has(key)) this.#usages.delete(key)
    }
    const keys = new Set(pods.map(([key]) => key))
    this.#events.show(model, '', e => !this.#filter.active || keys.has(`${e.involvedObject.namespace}/${e.involvedObject.name}`))
  }

  close() {}

  #row(model, key, pod) {
    if (!this.#usages.has(key)) this.#usages.set(key, [new SmallUsage('CPU', cores), new SmallUsage('Memory', bytes)])
    const [cpu, memory] = this.#usages.get(key)
    const use = model.use.get(key)
    draw(model, key, [cpu.chart, memory.chart])
    cpu.show(use?.cpuMillicores, use?.limits?.cpuMillicores)
    memory.show(use?.memoryWorkingSetBytes, use?.limits?.memoryBytes)
    const { namespace, name, creationTimestamp } = pod.object.metadata
    return {
      key,
      mood: mood(pod),
      cells: [
        namespace, { text: name, href: address('pods', namespace, name) }, pod.ready, plain(pod.status), pod.restarts,
        age(model.since(creationTimestamp)), { node: cpu.element }, { node: memory.element },
      ],
    }
  }
}

// SmallUsage is a value, its limit, and a small chart of the last minutes.
class SmallUsage {
  #format
  #value = el('span', { class: 'value' })
  #limit = el('small')

  constructor(title, format) {
    this.#format = format
    this.chart = new Chart(title, format, true)
    this.element = el('span', { class: 'usage' }, el('span', {}, this.#value, this.#limit), this.chart.element)
  }

  show(value, limit) {
    setText(this.#value, this.#format(value))
    setText(this.#limit, limit == null ? '' : ` / ${this.#format(limit)}`)
  }
}

// Tiles sums up all pods.
class Tiles {
  #values = new Map()
  element = el('dl', { class: 'tiles' })

  constructor() {
    for (const name of ['Running', 'Not ready', 'Failed', 'CPU', 'Memory']) {
      const value = el('dd')
      this.#values.set(name, value)
      this.element.append(el('div', {}, el('dt', {}, name), value))
    }
  }

  show(model) {
    this.element.hidden = model.pods.size === 0
    const moods = [...model.pods.values()].map(mood), count = m => moods.filter(one => one === m).length
    const sum = field => [...model.use.values()].reduce((n, u) => n + (u[field] ?? 0), 0)
    const values = {
      Running: [`${count('good')} / ${moods.length}`, 'good'], 'Not ready': [count('busy'), 'busy'], Failed: [count('bad'), 'bad'],
      CPU: [cores(sum('cpuMillicores'))], Memory: [bytes(sum('memoryWorkingSetBytes'))],
    }
    for (const [name, [value, feeling]] of Object.entries(values)) {
      const at = this.#values.get(name)
      setText(at, String(value))
      if (feeling) at.parentElement.dataset.mood = value === 0 ? 'done' : feeling
    }
  }
}
