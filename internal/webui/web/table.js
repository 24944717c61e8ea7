// A table whose rows have keys. What has not changed is left alone, so that it stays focused
// and selected.

import { el, mark, setText } from './words.js'

export class Table {
  #heads
  #body = el('tbody', { role: 'rowgroup' })
  #rows = new Map() // by key

  constructor(caption, heads) {
    this.#heads = heads
    const head = el('tr', { role: 'row' }, ...heads.map(h => el('th', { role: 'columnheader', scope: 'col', 'data-head': h.toUpperCase() }, h)))
    this.element = el('div', { class: 'frame' },
      el('table', { role: 'table', 'aria-label': caption }, el('thead', { role: 'rowgroup' }, head), this.#body))
  }

  // show shows rows: {key, mood, cells}. A cell is a text, {text, href} or {node}, which has to
  // be the same node each time.
  show(rows) {
    this.element.hidden = rows.length === 0
    const keep = new Set(rows.map(r => r.key))
    for (const [key, row] of this.#rows) {
      if (keep.has(key)) continue
      row.remove()
      this.#rows.delete(key)
    }
    rows.forEach((r, i) => {
      if (!this.#rows.has(r.key)) this.#rows.set(r.key, this.#row(r))
      const row = this.#rows.get(r.key)
      if (this.#body.children[i] !== row) this.#body.insertBefore(row, this.#body.children[i] ?? null)
      mark(row, 'data-mood', r.mood ?? null)
      r.cells.forEach((c, n) => {
        if (!c.node) setText(row.children[n].firstElementChild, c.text ?? c)
      })
    })
  }

  #row(r) {
    const cells = r.cells.map((c, n) => {
      const inner = c.node ?? (c.href ? el('a', { href: c.href }) : el('span'))
      return el('td', { role: 'cell', 'data-head': this.#heads[n].toUpperCase() }, inner)
    })
    return el('tr', { role: 'row', 'data-key': r.key }, ...cells)
  }
}
