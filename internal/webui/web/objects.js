// Objects as tables, in the columns of podrun get and image ls, and one object with its YAML.

import { Filter } from './filter.js'
import { address } from './route.js'
import { Table } from './table.js'
import { age, command, el, mark, pairs, plain, rowMood, setText } from './words.js'
import { Yaml } from './yaml.js'

// groups are the views: which kinds they show, and the command that makes an object.
export const groups = {
  workloads: {
    title: 'Workloads', fill: 'podrun create deployment NAME --image=IMAGE',
    kinds: ['Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob', 'ReplicaSet', 'ReplicationController'],
  },
  services: { title: 'Services', fill: 'podrun apply -f FILE', kinds: ['Service'] },
  storage: { title: 'Storage', fill: 'podrun apply -f FILE', kinds: ['PersistentVolumeClaim', 'PersistentVolume'] },
  images: { title: 'Images', fill: 'podrun image pull IMAGE', kinds: ['images'] },
}

// groupOf returns the view that shows a kind.
export function groupOf(kind) { return Object.keys(groups).find(g => groups[g].kinds.includes(kind)) }

const titles = { images: 'Images', sets: 'Sets' }
const titleOf = kind => titles[kind] ?? kind + 's'

// texts returns a row's cells by column. Elapsed time is counted here.
function texts(model, kind, row) {
  const columns = model.of('tables').get(kind)?.columns ?? []
  return Object.fromEntries(columns.map((column, i) => {
    const since = row.since?.[column]
    return [column, since ? [age(model.since(since)), row.cells[i]].join(' ').trim() : plain(row.cells[i])]
  }))
}

// rowsOf returns the rows of a kind: their keys, what the machine sends, and their texts.
export function rowsOf(model, kind) { return [...model.of(kind)].map(([key, row]) => [key, row, texts(model, kind, row)]) }

// Section is the table of a kind, below its title and the number of rows. Without rows it is hidden.
export class Section {
  #kind
  #table
  #count = el('small')
  element

  constructor(kind) {
    this.#kind = kind
    this.element = el('section', { 'aria-label': titleOf(kind), hidden: true }, el('h2', {}, titleOf(kind), ' ', this.#count))
  }

  show(model, rows) {
    this.element.hidden = rows.length === 0
    if (!this.#table) {
      if (rows.length === 0) return // the columns may not be known
      this.#table = new Table(titleOf(this.#kind), model.of('tables').get(this.#kind).columns)
      this.element.append(this.#table.element)
    }
    setText(this.#count, String(rows.length))
    const opens = groupOf(this.#kind) && this.#kind !== 'images'
    this.#table.show(rows.map(([key, , cells]) => ({
      key,
      mood: rowMood(cells),
      cells: Object.entries(cells).map(([column, text]) => column === 'NAME' && opens ? { text, href: address(this.#kind, ...key.split('/')) } : text),
    })))
  }
}

export class Group {
  #group
  #model
  #filter = new Filter(() => this.show(this.#model))
  #tables = new Map() // by kind: a Section
  #none = el('p', { class: 'none' })
  #others = el('p', { class: 'none' })
  element

  constructor(name) {
    this.#group = groups[name]
    for (const kind of this.#group.kinds) this.#tables.set(kind, new Section(kind))
    this.element = el('div', {}, el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, this.#group.title), this.#filter.element),
      ...[...this.#tables.values()].map(section => section.element), this.#none, this.#others)
  }

  show(model) {
    this.#model = model
    let shown = 0, all = 0
    const empty = []
    for (const kind of this.#group.kinds) {
      const rows = rowsOf(model, kind)
      const matching = rows.filter(([, row, cells]) => this.#filter.matches(Object.values(cells), row.labels))
      all += rows.length
      shown += matching.length
      if (rows.length === 0) empty.push(titleOf(kind))
      this.#tables.get(kind).show(model, matching)
    }
    this.#filter.count(shown, all)
    this.#none.hidden = shown > 0
    if (!model.loaded) setText(this.#none, 'Loading …')
    else if (all > 0) setText(this.#none, 'Nothing matches the filter.')
    else if (!this.#none.querySelector('code')) this.#none.replaceChildren(`No ${this.#group.title.toLowerCase()}. Make some: `, command(this.#group.fill))
    this.#others.hidden = all === 0 || empty.length === 0
    setText(this.#others, `None of: ${empty.join(', ')}`)
  }

  close() {}
}

// One shows an object: its row and its YAML.
export class One {
  #kind
  #key
  #gone = el('p', { role: 'alert', hidden: true })
  #facts = el('dl', { class: 'facts' })
  #status = el('span', { id: 'status', hidden: true })
  #yaml
  element

  constructor(kind, key) {
    this.#kind = kind
    this.#key = key
    this.#yaml = new Yaml(kind, key)
    const [namespace, name] = key.split('/')
    setText(this.#gone, `This ${kind} does not exist.`)
    this.element = el('div', {},
      el('p', { class: 'path' }, el('a', { href: address(groupOf(kind)) }, groups[groupOf(kind)].title), ' / ', kind + (namespace && ` / ${namespace}`)),
      el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, name), this.#status),
      this.#gone, this.#facts, this.#yaml.element)
  }

  show(model) {
    const row = model.of(this.#kind).get(this.#key)
    this.#gone.hidden = row !== undefined || !model.loaded
    this.#yaml.show(row)
    if (!row) return
    const cells = texts(model, this.#kind, row)
    const feeling = rowMood(cells)
    this.#status.hidden = !feeling
    mark(this.#status, 'data-mood', feeling ?? null)
    setText(this.#status, cells.STATUS ?? cells.READY ?? '')
    pairs(this.#facts, [
      ...Object.entries(cells).filter(([column]) => column !== 'NAME' && column !== 'NAMESPACE').map(([column, text]) => [column.toLowerCase(), text]),
      ['labels', Object.entries(row.labels ?? {}).map(([k, v]) => `${k}=${v}`).join(' ')],
    ])
  }

  close() {}
}
