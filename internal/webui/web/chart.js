// Usage over time, as a line, with the limit as another one.

import { age, bytes, clock, cores, el, mark, setText, unknown } from './words.js'

const width = 300, height = 100 // of the drawing, which is stretched
const shortest = 120 // seconds that a chart shows at least
const mostTicks = 5
const farLimit = 4 // a limit is in scale if it is at most so many times the usage

const svg = (name, attributes) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value)
  return e
}

// draw draws what a pod has used, with a chart for processors and one for memory.
export function draw(model, key, [cpu, memory]) {
  const points = model.history.get(key) ?? []
  const limits = model.use.get(key)?.limits
  const at = { now: model.at, gap: model.every * 3, time: at => model.timeAt(at) }
  cpu.show(points.map(p => [p[0], p[1]]), at, limits?.cpuMillicores)
  memory.show(points.map(p => [p[0], p[2]]), at, limits?.memoryBytes)
}

export class Chart {
  #title
  #format
  #area = svg('path', { class: 'area' })
  #line = svg('path', { class: 'line' })
  #limit = svg('path', { class: 'limit' })
  #grid = svg('path', { class: 'grid' })
  #svg = svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none' })
  #value = el('strong')
  #words = el('span', { class: 'range' })
  #scale = el('div', { class: 'scale', 'aria-hidden': 'true' })
  #times = el('div', { class: 'times', 'aria-hidden': 'true' })
  #limitName = el('span', { class: 'limit-name', 'aria-hidden': 'true', hidden: true })
  #cursor = el('span', { class: 'cursor', hidden: true })
  #readout = el('output', { class: 'readout' })
  #plot = el('div', { class: 'plot', role: 'img' })
  #drawn = { points: [], from: 0, span: 1, top: 1 } // known points
  #chosen // the time of the point that is read out

  // A small chart has no words beside it.
  constructor(title, format, small) {
    this.#title = title
    this.#format = format
    this.#svg.append(this.#grid, this.#area, this.#limit, this.#line)
    this.#plot.append(this.#svg)
    if (small) {
      this.element = el('span', { class: 'spark' }, this.#plot)
      return
    }
    this.#plot.tabIndex = 0
    this.#plot.append(this.#limitName, this.#cursor)
    this.element = el('figure', {},
      el('figcaption', {}, el('span', { class: 'name' }, title), this.#value, this.#words),
      el('div', { class: 'grid-of-chart' }, this.#scale, this.#plot, this.#times), this.#readout)
    this.#plot.addEventListener('pointermove', e => this.#point(e))
    this.#plot.addEventListener('pointerdown', e => this.#point(e))
    this.#plot.addEventListener('pointerleave', e => { if (e.pointerType === 'mouse') this.#choose() })
    this.#plot.addEventListener('blur', () => this.#choose())
    this.#plot.addEventListener('keydown', e => this.#step(e))
  }

  // show draws points, [at, value], of which a value may be null. now is the time of the right edge;
  // points further apart than gap are not joined; time converts to ms since 1970. limit may be
  // undefined.
  show(points, { now, gap, time }, limit) {
    const known = points.filter(p => p[1] != null)
    const span = Math.max(now - (points[0]?.[0] ?? now), shortest), from = now - span
    const most = Math.max(...known.map(p => p[1]), 0)
    const inScale = limit && limit <= most * farLimit
    const top = (this.#format === bytes ? niceBytes : niceCores)(inScale ? Math.max(limit, most) : most * 1.1)
    const x = at => (width * (at - from) / span).toFixed(1)
    const y = v => (height * (1 - v / top)).toFixed(1)
    let path = '', area = '', last = -Infinity, first
    const close = () => first === undefined ? '' : `L${x(last)} ${height}L${x(first)} ${height}Z`
    for (const [at, value] of known) {
      const to = `${x(at)} ${y(value)}`
      if (at - last > gap) {
        area += close() + `M${to}`
        path += `M${to}h0` // h0 makes a dot of a point that stands alone
        first = at
      } else {
        area += `L${to}`
        path += `L${to}`
      }
      last = at
    }
    mark(this.#line, 'd', path)
    mark(this.#line, 'data-points', String(known.length))
    mark(this.#area, 'd', area + close())
    const limitAt = inScale ? y(limit) : '0.5'
    mark(this.#limit, 'd', limit ? `M0 ${limitAt}H${width}` : '')
    this.#drawn = { points: known, from, span, top, time }
    this.#label(known, most, limit, inScale)
    this.#axes(top, from, span, time)
    this.#cursorAt()
  }

  #label(known, most, limit, inScale) {
    const now = known.length ? this.#format(known.at(-1)[1]) : unknown
    const range = known.length ? `max ${this.#format(most)}` + (limit ? `, limit ${this.#format(limit)}` : ', no limit enforced') : ''
    mark(this.#plot, 'aria-label', known.length ? `${this.#title}: ${now} now, ${range}, the last ${age(this.#drawn.span)}` : `${this.#title}: ${unknown}`)
    setText(this.#value, now)
    setText(this.#words, range)
    this.#limitName.hidden = !limit
    if (!limit) return
    setText(this.#limitName, `limit ${this.#format(limit)}` + (inScale ? '' : ', above the scale'))
    this.#limitName.style.top = inScale ? `${100 * (1 - limit / this.#drawn.top)}%` : '0'
  }

  // #axes writes the numbers beside the chart, and the times below it.
  #axes(top, from, span, time) {
    if (!this.#scale.isConnected) return
    const levels = [top, top / 2, 0]
    mark(this.#grid, 'd', levels.map(v => `M0 ${height * (1 - v / top)}H${width}`).join(''))
    place(this.#scale, levels.map(v => [this.#format(v), 'top', 1 - v / top]))
    const step = [15, 30, 60, 120, 180, 300].find(s => span / s <= mostTicks) ?? 900
    const ticks = []
    for (let t = Math.ceil(time(from) / 1000 / step) * step; t * 1000 <= time(from + span); t += step) {
      ticks.push([clock(t * 1000, step < 60), 'left', (t * 1000 - time(from)) / 1000 / span])
    }
    place(this.#times, ticks)
  }

  #point(e) {
    const { points, from, span } = this.#drawn
    const box = this.#plot.getBoundingClientRect()
    const at = from + span * (e.clientX - box.left) / box.width
    const near = (a, b) => Math.abs(a[0] - at) <= Math.abs(b[0] - at) ? a : b
    if (points.length) this.#choose(points.reduce(near)[0])
  }

  // #step goes to the point before or after the chosen one, by the arrow keys.
  #step(e) {
    const { points } = this.#drawn
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[e.key]
    if (!by || points.length === 0) return
    e.preventDefault()
    const i = points.findIndex(p => p[0] === this.#chosen)
    this.#choose(points[Math.min(Math.max((i < 0 ? points.length : i) + by, 0), points.length - 1)][0])
  }

  #choose(at) {
    this.#chosen = at
    this.#cursorAt()
  }

  // #cursorAt shows the chosen point with its time and value.
  #cursorAt() {
    const { points, from, span, top, time } = this.#drawn
    const p = points.find(p => p[0] === this.#chosen)
    this.#cursor.hidden = !p
    setText(this.#readout, p ? `${clock(time(p[0]), true)}  ${this.#format(p[1])}` : '')
    if (!p) return
    this.#cursor.style.left = `${100 * (p[0] - from) / span}%`
    this.#cursor.style.setProperty('--y', `${100 * (1 - p[1] / top)}%`)
  }
}

// place puts texts along an edge: [text, side, share].
function place(edge, labels) {
  while (edge.children.length > labels.length) edge.lastElementChild.remove()
  labels.forEach(([text, side, share], i) => {
    const label = edge.children[i] ?? edge.appendChild(el('span'))
    setText(label, text)
    label.style[side] = `${100 * share}%`
  })
}

// niceCores returns the top of a scale of thousandths of a processor.
function niceCores(n) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(n, 10)))
  return ten * [1, 2, 4, 6, 8, 10].find(s => ten * s >= n)
}

// niceBytes returns the top of a scale of bytes: its half is a whole number, too.
function niceBytes(n) {
  const mi = 1 << 20, two = 2 ** Math.floor(Math.log2(Math.max(n, mi)))
  return [two, two >= 4 * mi ? two * 1.5 : two, two * 2].find(s => s >= n)
}

export const usageCharts = () => [new Chart('CPU', cores), new Chart('Memory', bytes)]
