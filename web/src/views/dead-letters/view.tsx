export default function DeadLetters(_: { id?: string }) {
  return <h1>Dead letters</h1>
}
