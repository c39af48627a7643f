import type { Schemas } from '../../lib/client'

export type Rule = Schemas['ArgumentRule']
export type Review = Schemas['Review']
export type Grant = Schemas['Grant']
export type SessionMode = Schemas['SessionMode']
export type Preference = Schemas['Preference']
