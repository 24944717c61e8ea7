// An object as podrun get -o yaml prints it. It is read when it is shown, and when the object changes.

import { read } from './stream.js'
import { el, say } from './words.js'

export class Yaml {
  #query
  #text = el('pre', { class: 'yaml', tabindex: '0', 'aria-label': 'YAML' })
  #note = el('p', { class: 'none', role: 'status' })
  #of // the object whose text is shown
  #reading = false
  element = el('section', { 'aria-label': 'YAML' }, this.#text, this.#note)

  constructor(kind, key) { this.#query = new URLSearchParams({ kind, key }) }

  // show is given the object, which is another one after each change, or undefined.
  async show(object) {
    if (object === this.#of || this.#reading || !object) return
    this.#reading = true
    this.#of = object
    try {
      say(this.#text, await read('api/yaml?' + this.#query))
      say(this.#note, '')
    } catch (e) {
      say(this.#note, e.message)
    } finally {
      this.#reading = false
    }
  }
}
