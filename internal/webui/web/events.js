// Events: of a pod, or of all.

import { Filter } from './filter.js'
import { Table } from './table.js'
import { age, command, el, plain } from './words.js'

export class Events {
  #table = new Table('Events', ['Last seen', 'Type', 'Reason', 'Object', 'Message'])
  #none = el('p', { class: 'none' }, 'No events.')
  #most
  element

  // most is how many events are shown at most.
  constructor(most, title = 'Events') {
    this.#most = most
    this.element = el('section', { 'aria-label': 'Events' }, el('h2', {}, title), this.#none, this.#table.element)
  }

  // show shows events of a pod; of all pods for "".
  show(model, key, matches = () => true) {
    const all = model.eventsOf(key), events = all.filter(matches)
    this.#none.hidden = events.length > 0
    this.#table.show(events.slice(0, this.#most).map(e => ({
      key: `${e.metadata.namespace}/${e.metadata.name}`,
      mood: e.type === 'Warning' ? 'bad' : 'done',
      cells: [seen(model, e), plain(e.type), plain(e.reason), object(e, key), plain(e.message)],
    })))
    return [events.length, all.length]
  }
}

// EventList is the view of all events.
export class EventList {
  #model
  #filter = new Filter(() => this.show(this.#model))
  #events = new Events(500, 'Latest first')
  #none = el('p', { class: 'none' }, 'Pods that start, fail or are probed make events: ', command('podrun up -d -f FILE'))
  element = el('div', {}, el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Events'), this.#filter.element), this.#events.element, this.#none)

  show(model) {
    this.#model = model
    const [shown, all] = this.#events.show(model, '', e =>
      this.#filter.matches([e.type, e.reason, e.message, `${e.involvedObject.namespace}/${e.involvedObject.name}`]))
    this.#filter.count(shown, all)
    this.#none.hidden = all > 0
  }

  close() {}
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
