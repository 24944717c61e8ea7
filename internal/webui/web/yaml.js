// An object as podrun get -o yaml prints it. It is read with every message of the stream: not each change of an
// object changes its row.

import { read } from './stream.js'
import { el, setText } from './words.js'

export class Yaml {
  #query
  #text = el('pre', { class: 'yaml', tabindex: '0', 'aria-label': 'YAML' })
  #note = el('p', { class: 'none', role: 'status' })
  #reading = false
  element = el('section', { 'aria-label': 'YAML' }, this.#text, this.#note)

  constructor(kind, key) { this.#query = new URLSearchParams({ kind, key }) }

  // show is given the row of the object, or undefined if it does not exist.
  async show(row) {
    if (this.#reading || !row) return
    this.#reading = true
    try {
      setText(this.#text, await read('api/yaml?' + this.#query))
      setText(this.#note, '')
    } catch (e) {
      setText(this.#note, e.message)
    } finally {
      this.#reading = false
    }
  }
}
