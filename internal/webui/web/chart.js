// What was used over time, as a line.

import { age, el, mark, say, unknown } from './words.js'

const width = 300, height = 60
const shortest = 120 // seconds that a chart shows at least

const svg = (name, attributes) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value)
  return e
}

export class Chart {
  #title
  #format
  #line = svg('path', { class: 'line' })
  #limit = svg('path', { class: 'limit' })
  #svg = svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img' })
  #words = el('figcaption')
  #span = el('p', { class: 'span', 'aria-hidden': 'true' })

  // A small chart has no words beside it.
  constructor(title, format, small) {
    this.#title = title
    this.#format = format
    this.#svg.append(this.#limit, this.#line)
    this.element = small ? el('span', { class: 'spark' }, this.#svg) : el('figure', {}, this.#words, this.#svg, this.#span)
  }

  // show draws points, [at, value], of which a value may be null. now is the time of the right edge;
  // points further apart than gap are not joined. limit may be undefined.
  show(points, now, gap, limit) {
    const known = points.filter(p => p[1] != null)
    const span = Math.max(now - (points[0]?.[0] ?? now), shortest)
    const most = Math.max(...known.map(p => p[1]), 0)
    const top = limit && limit < most * 4 ? Math.max(limit, most) : most
    const y = v => (height - 2 - (height - 4) * (top ? v / top : 0)).toFixed(1)
    let path = '', last = -Infinity
    for (const [at, value] of known) {
      const to = `${(width * (1 - (now - at) / span)).toFixed(1)} ${y(value)}`
      path += at - last > gap ? `M${to}h0` : `L${to}` // h0 makes a dot of a point that stands alone
      last = at
    }
    mark(this.#line, 'd', path)
    mark(this.#limit, 'd', limit && limit <= top ? `M0 ${y(limit)}H${width}` : '')
    mark(this.#line, 'data-points', String(known.length))
    const words = known.length
      ? `${this.#title}: ${this.#format(known.at(-1)[1])} now, at most ${this.#format(most)}` + (limit ? `, limit ${this.#format(limit)}` : '')
      : `${this.#title}: ${unknown}`
    mark(this.#svg, 'aria-label', words)
    say(this.#words, words)
    say(this.#span, `the last ${age(span)}`)
  }
}
