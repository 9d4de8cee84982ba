// The profile page offers this device's time zone.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const field = document.getElementById("id_time_zone");
const offer = document.querySelector("[data-browser-zone]");

offer.textContent = offer.textContent.replace("{}", zone);
offer.addEventListener("click", () => {
  field.value = zone;
  offer.hidden = true;
  field.focus();
});
field.addEventListener("input", updateOffer);
updateOffer();

function updateOffer() {
  offer.hidden = !zone || (field.value || field.placeholder) === zone;
}
