// The logs of a pod's containers: the last lines, and new ones. Container, previous instance and
// search are kept in the address.

import { containersOf } from './containers.js'
import { param, setParam } from './route.js'
import { follow } from './stream.js'
import { el, mark, setText } from './words.js'

const most = 2000 // lines that are kept: a log may have a gigabyte

export class Logs {
  #namespace
  #pod
  #names = ''
  #wanted = param('container') // until the containers are known
  #choice = el('select', { 'aria-label': 'Container', onchange: () => this.#chosen() })
  #previous = this.#box('previous instance', () => this.#chosen())
  #times = this.#box('times', () => this.#lines.classList.toggle('times', this.#times.checked))
  #follows = this.#box('follow', () => this.#scroll())
  #only = this.#box('only matches', () => {
    this.#lines.classList.toggle('only', this.#only.checked)
    this.#scroll()
  })
  #search = el('input', {
    type: 'search', 'aria-label': 'Search the log', placeholder: 'Search', autocomplete: 'off', spellcheck: 'false',
    oninput: () => this.#searched(), onkeydown: e => this.#searchKey(e),
  })
  #found = el('span', { class: 'count', role: 'status' })
  #lines = el('pre', { class: 'log', role: 'log', 'aria-live': 'off', 'aria-label': 'Log', tabindex: '0', onscroll: () => this.#scrolled() })
  #note = el('p', { class: 'none', role: 'status' })
  #stop
  #life // of the pod: another one has more to read
  #seen // the life that the stream is of
  #ended = true
  #current // the match that was gone to

  constructor(namespace, pod) {
    this.#namespace = namespace
    this.#pod = pod
    this.#previous.checked = param('previous') !== ''
    this.#follows.checked = true
    this.#search.value = param('q')
    this.element = el('section', { 'aria-label': 'Logs' },
      el('div', { class: 'tools' }, this.#choice, this.#search, this.#found,
        ...[this.#only, this.#follows, this.#times, this.#previous].map(b => el('label', {}, b, ' ', b.name))),
      this.#lines, this.#note)
  }

  #box(name, onchange) { return el('input', { type: 'checkbox', name, onchange }) }

  // show is given the pod: with another life there is more to read.
  show(pod) {
    if (!pod) return
    const containers = containersOf(pod.object), names = containers.map(c => c.spec.name)
    if (names.join() !== this.#names) {
      this.#names = names.join()
      const chosen = this.#wanted || this.#choice.value
      this.#wanted = ''
      this.#choice.replaceChildren(el('option', { value: '' }, 'all containers'), ...names.map(n => el('option', { value: n }, n)))
      this.#choice.value = names.includes(chosen) ? chosen : ''
    }
    this.#life = pod.object.metadata.uid + containers.map(c => c.status?.restartCount ?? 0)
    if (this.#ended && this.#life !== this.#seen && !document.hidden) this.#open()
  }

  close() {
    this.#stop?.abort()
    document.removeEventListener('visibilitychange', this.#turned)
  }

  // While the page is in the background its log is not read.
  #turned = () => {
    if (document.hidden) this.#stop?.abort()
    else this.#open()
  }

  #chosen() {
    setParam('container', this.#choice.value)
    setParam('previous', this.#previous.checked ? '1' : '')
    this.#open()
  }

  #open() {
    this.close()
    document.addEventListener('visibilitychange', this.#turned)
    this.#stop = new AbortController()
    this.#ended = false
    this.#seen = this.#life
    const query = new URLSearchParams({ namespace: this.#namespace, pod: this.#pod, container: this.#choice.value, tail: 1000 })
    if (this.#previous.checked) query.set('previous', '1')
    follow('api/logs?' + query, this.#stop.signal, m => this.#take(m), (state, why) => {
      if (state === 'open') this.#lines.replaceChildren()
      setText(this.#note, state === 'open' ? '' : why)
    })
  }

  // #take shows lines, and waits until they are drawn: what the page cannot show, it is not sent.
  async #take(m) {
    const lines = m.lines.slice(-most)
    const skipped = (m.skipped ?? 0) + m.lines.length - lines.length
    if (skipped > 0) this.#lines.append(el('div', { class: 'note' }, `… ${skipped} lines are omitted: they were written faster than they could be shown`))
    this.#lines.append(...lines.map(l => this.#line(l)))
    while (this.#lines.childElementCount > most) this.#lines.firstElementChild.remove()
    this.#scroll()
    this.#count()
    if (m.end) {
      this.#ended = true
      setText(this.#note, m.error ?? (this.#lines.childElementCount ? 'The log is complete.' : 'The log is complete: nothing was written.'))
      return false
    }
    await new Promise(next => requestAnimationFrame(next))
    return true
  }

  #line([container, time, stream, text]) {
    const name = this.#choice.value === '' && this.#names.includes(',') ? [el('span', { class: 'who' }, container + ' ')] : []
    const words = el('span', { class: 'text' }, text)
    this.#mark(words)
    return el('div', { class: stream }, el('time', {}, time + ' '), ...name, words)
  }

  #scroll() {
    if (this.#follows.checked) this.#lines.scrollTop = this.#lines.scrollHeight
  }

  // Scrolling up stops following, and scrolling to the end starts it again. If all is in view, nobody has
  // scrolled.
  #scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.#lines
    if (scrollHeight > clientHeight) this.#follows.checked = scrollTop + clientHeight >= scrollHeight - 30
  }

  #searched() {
    setParam('q', this.#search.value)
    this.#current = undefined
    for (const words of this.#lines.querySelectorAll('.text')) this.#mark(words)
    this.#count()
  }

  // #mark highlights the matches in a line.
  #mark(words) {
    const text = words.textContent, query = this.#search.value.toLowerCase(), low = text.toLowerCase()
    const parts = []
    let from = 0
    for (let at; query && low.length === text.length && (at = low.indexOf(query, from)) >= 0; from = at + query.length) {
      parts.push(text.slice(from, at), el('mark', {}, text.slice(at, at + query.length)))
    }
    if (parts.length || words.childElementCount) words.replaceChildren(...parts, text.slice(from))
    if (parts.length) words.dataset.match = ''
    else delete words.dataset.match
  }

  #count() {
    const n = this.#search.value ? this.#lines.querySelectorAll('[data-match]').length : 0
    setText(this.#found, this.#search.value ? `${n} ${n === 1 ? 'line' : 'lines'}` : '')
  }

  // Enter goes to the next match, with Shift to the one before; Escape clears the search.
  #searchKey(e) {
    if (e.key === 'Escape' && this.#search.value) {
      e.preventDefault()
      e.stopPropagation()
      this.#search.value = ''
      this.#searched()
    }
    if (e.key !== 'Enter') return
    const all = [...this.#lines.querySelectorAll('mark')]
    if (all.length === 0) return
    this.#current?.classList.remove('current')
    const i = all.indexOf(this.#current), by = e.shiftKey ? -1 : 1
    this.#current = all[i < 0 ? (by > 0 ? 0 : all.length - 1) : (i + by + all.length) % all.length]
    this.#current.classList.add('current')
    this.#current.scrollIntoView({ block: 'center' })
    mark(this.#lines, 'data-current', String(all.indexOf(this.#current)))
  }
}
