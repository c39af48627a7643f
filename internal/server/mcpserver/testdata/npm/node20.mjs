// Lets the conformance suite load on Node 20, whose fs has no globSync; the scenarios
// for authorization servers do not call it.
import { register } from 'node:module'
import * as has from 'node:fs'

const fs = 'data:text/javascript,export * from "node:fs"; export const globSync = undefined'
const hooks = `export const resolve = (name, context, next) => name === 'fs' && context.parentURL.includes('/conformance/')
  ? { url: ${JSON.stringify(fs)}, shortCircuit: true } : next(name, context)`
if (!has.globSync) register('data:text/javascript,' + encodeURIComponent(hooks))
