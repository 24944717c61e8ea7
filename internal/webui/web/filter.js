// The filter of a list: words over names, namespaces, labels and states, kept in the address.

import { param, setParam } from './route.js'
import { el, setText } from './words.js'

export class Filter {
  #changed
  #words
  #input = el('input', {
    type: 'search', id: 'filter', placeholder: 'name, namespace, label=value, status', autocomplete: 'off', spellcheck: 'false',
    oninput: () => this.#typed(), onkeydown: e => this.#escaped(e),
  })
  #count = el('span', { class: 'count', role: 'status' })
  element = el('p', { class: 'filter', role: 'search' }, el('label', { for: 'filter' }, 'Filter'), this.#input, this.#count)

  // changed is called when other objects match.
  constructor(changed) {
    this.#changed = changed
    this.#input.value = param('q')
    this.#split()
  }

  // matches reports whether all words are in one of the texts or labels.
  matches(texts, labels) {
    if (this.#words.length === 0) return true
    const all = [...texts, ...Object.entries(labels ?? {}).map(([k, v]) => `${k}=${v}`)].join('\n').toLowerCase()
    return this.#words.every(w => all.includes(w))
  }

  // count shows how many objects match.
  count(shown, all) { setText(this.#count, this.#words.length ? `${shown} of ${all}` : '') }

  get active() { return this.#words.length > 0 }

  #split() { this.#words = this.#input.value.toLowerCase().split(/\s+/).filter(w => w) }

  #typed() {
    setParam('q', this.#input.value.trim())
    this.#split()
    this.#changed()
  }

  // Escape clears the filter; in an empty one it does what it does elsewhere.
  #escaped(e) {
    if (e.key !== 'Escape' || !this.#input.value) return
    e.preventDefault()
    e.stopPropagation()
    this.#input.value = ''
    this.#typed()
  }
}
