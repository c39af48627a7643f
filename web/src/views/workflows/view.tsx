export default function Workflows(_: { id?: string }) {
  return <h1>Workflows</h1>
}
