// The logs of a pod's containers: the last lines, and those that come.

import { follow } from './stream.js'
import { el, say } from './words.js'

const most = 2000 // lines that are kept: a log may have a gigabyte

export class Logs {
  #namespace
  #pod
  #names = ''
  #choice = el('select', { 'aria-label': 'Container', onchange: () => this.#open() }, el('option', { value: '' }, 'all containers'))
  #previous = el('input', { type: 'checkbox', onchange: () => this.#open() })
  #times = el('input', { type: 'checkbox', onchange: () => this.#box.classList.toggle('times', this.#times.checked) })
  #box = el('pre', { class: 'log', role: 'log', 'aria-live': 'off', 'aria-label': 'Log', tabindex: '0' })
  #note = el('p', { class: 'none', role: 'status' })
  element = el('section', { 'aria-label': 'Logs' }, el('h2', {}, 'Logs'),
    el('p', { class: 'tools' }, this.#choice, el('label', {}, this.#previous, ' previous instance'), el('label', {}, this.#times, ' times')),
    this.#box, this.#note)
  #stop
  #life // of the pod: another one has more to say
  #seen // which of them the stream is of
  #ended = true

  constructor(namespace, pod) {
    this.#namespace = namespace
    this.#pod = pod
  }

  // show learns of the containers, and of the pod's life: with another one there is more to read.
  show(names, life) {
    if (names.join() !== this.#names) {
      this.#names = names.join()
      const chosen = this.#choice.value
      this.#choice.replaceChildren(el('option', { value: '' }, 'all containers'), ...names.map(n => el('option', { value: n }, n)))
      this.#choice.value = names.includes(chosen) ? chosen : ''
    }
    this.#life = life
    if (this.#ended && life !== this.#seen && !document.hidden) this.#open()
  }

  close() {
    this.#stop?.abort()
    document.removeEventListener('visibilitychange', this.#turned)
  }

  // While nobody looks at the page its log is not read.
  #turned = () => {
    if (document.hidden) this.#stop?.abort()
    else this.#open()
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
      if (state === 'open') this.#box.replaceChildren()
      say(this.#note, state === 'open' ? '' : why)
    })
  }

  // take shows lines, and waits until they are drawn: what the page cannot show, it is not sent.
  async #take(m) {
    const follows = this.#box.scrollTop + this.#box.clientHeight >= this.#box.scrollHeight - 30
    const lines = m.lines.slice(-most)
    const skipped = (m.skipped ?? 0) + m.lines.length - lines.length
    if (skipped > 0) this.#box.append(el('div', { class: 'note' }, `… ${skipped} lines are omitted: they were written faster than they could be shown`))
    this.#box.append(...lines.map(l => this.#line(l)))
    while (this.#box.childElementCount > most) this.#box.firstElementChild.remove()
    if (follows) this.#box.scrollTop = this.#box.scrollHeight
    if (m.end) {
      this.#ended = true
      say(this.#note, m.error ?? 'The log is complete.')
      return false
    }
    await new Promise(next => requestAnimationFrame(next))
    return true
  }

  #line([container, time, stream, text]) {
    const name = this.#choice.value === '' && this.#names.includes(',') ? [el('span', { class: 'who' }, container + ' ')] : []
    return el('div', { class: stream }, el('time', {}, time + ' '), ...name, text)
  }
}
